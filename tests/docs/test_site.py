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


# What a page loads by itself; a link to elsewhere is none of it.
TAKEN = re.compile(r"""(?:\ssrc=|<link\b[^>]*\bhref=|url\(|@import\s*)["']?\s*(?:https?:)?//[^"'>\s)]+""")


def build(out: Path) -> None:
    """The site, warnings as errors; its commands are run by the tests beside this one."""
    folders = [str(DOCS / "site"), str(DOCS), str(out)]
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-c", *folders]
    quick = {**os.environ, "SERVEWISE_DOCS_RUN": "0"}
    built = subprocess.run(command, env=quick, capture_output=True, text=True, check=False)

    assert built.returncode == 0, built.stderr


@pytest.mark.slow
def test_the_site_is_whole_and_reads_offline(tmp_path: Path) -> None:
    """Each document is a page that search finds; no page takes a script, style, font or image from a network."""
    build(tmp_path)
    wanted = {str(each.relative_to(DOCS).with_suffix("")) for each in DOCS.rglob("*.md") if "_build" not in each.parts}
    files = [*tmp_path.rglob("*.html"), *tmp_path.rglob("*.css")]
    index = (tmp_path / "searchindex.js").read_text()

    assert len(wanted) > 30
    assert {each for each in wanted if not (tmp_path / f"{each}.html").exists() or f'"{each}"' not in index} == set()
    assert [each.name for each in files if TAKEN.search(each.read_text())] == []
