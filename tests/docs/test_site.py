"""The site builds: every link leads somewhere, every page is in the contents, nothing comes from a network."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from docs.site.examples import DOCS

pytest.importorskip("sphinx", reason="the site is built with servewise[docs]")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built with warnings as errors; its commands are run by the tests beside this one."""
    out = tmp_path_factory.mktemp("site")
    folders = [str(DOCS / "site"), str(DOCS), str(out)]
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-c", *folders]
    built = subprocess.run(
        command, env={**os.environ, "SERVEWISE_DOCS_RUN": "0"}, capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stderr
    return out


@pytest.mark.slow
def test_it_reads_offline(site: Path) -> None:
    """No page takes a script, a style, a font or an image from a network."""
    taken = re.compile(r"""(?:\ssrc=|<link\b[^>]*\bhref=|url\(|@import\s*)["']?\s*(?:https?:)?//[^"'>\s)]+""")
    files = [*site.rglob("*.html"), *site.rglob("*.css")]
    found = {each.name: taken.findall(each.read_text()) for each in files}

    assert len(files) > 20
    assert {name: links for name, links in found.items() if links} == {}


@pytest.mark.slow
def test_every_page_is_there(site: Path) -> None:
    """Each Markdown file of the documents is a page that search can find."""
    wanted = {str(each.relative_to(DOCS).with_suffix("")) for each in DOCS.rglob("*.md") if "_build" not in each.parts}
    index = (site / "searchindex.js").read_text()

    assert {each for each in wanted if not (site / f"{each}.html").exists()} == set()
    assert {each for each in wanted if f'"{each}"' not in index} == set()
