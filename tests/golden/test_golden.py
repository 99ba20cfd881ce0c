"""What users see, kept as files: a change to any of it is a diff that someone looks at."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.golden.outline import outline

from servewise import __version__
from servewise.report import load_answer, print_answer, render_html, render_markdown, terminal_console

DOCUMENTS = sorted((Path(__file__).parent / "documents").glob("*.json"))
NAMES = [path.stem for path in DOCUMENTS]
Golden = Callable[[str, str], None]


@pytest.mark.parametrize("path", DOCUMENTS, ids=NAMES)
def test_terminal(path: Path, golden: Golden) -> None:
    """Each command's answer prints in a pipe as its file says, within 80 columns."""
    out = io.StringIO()
    print_answer(load_answer(path), terminal_console(out))
    lines = [line.rstrip() for line in out.getvalue().splitlines()]

    assert max(map(len, lines)) <= 80
    golden(f"{path.stem}.txt", "\n".join(lines) + "\n")


@pytest.mark.parametrize("path", DOCUMENTS, ids=NAMES)
def test_markdown(path: Path, golden: Golden) -> None:
    """Each command's answer is the Markdown that its file says."""
    golden(f"{path.stem}.md", render_markdown(load_answer(path), title=f"servewise {path.stem}"))


@pytest.mark.parametrize("path", DOCUMENTS, ids=NAMES)
def test_html(path: Path, golden: Golden) -> None:
    """Each command's report holds the words and tags that its file says, every tag closed."""
    page = render_html(load_answer(path), title=f"servewise {path.stem}", command=f"servewise {path.stem} ...")

    golden(f"{path.stem}.outline", timeless(page))


def test_html_of_several(golden: Golden) -> None:
    """A report of several answers leads with the plan and gives each answer its section."""
    answers = {name: load_answer(path) for name, path in zip(NAMES, DOCUMENTS, strict=True) if name in ("plan", "size")}

    golden("several.outline", timeless(render_html(answers, title="Plan and size")))


def test_terminal_of_several(golden: Golden) -> None:
    """An answer made of answers prints a summary: each one's headline, the plan's ranking, every caveat once."""
    documents = {name: load_answer(path).to_json() for name, path in zip(NAMES, DOCUMENTS, strict=True)}
    sections = {name: documents[name] for name in ("size", "simulate", "plan", "study")}
    whole = replace(load_answer(DOCUMENTS[0]), command="demo", result={"sections": sections}, caveats=())
    out = io.StringIO()
    print_answer(whole, terminal_console(out))

    golden("several.txt", "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n")


def timeless(page: str) -> str:
    """The page's outline without the version that made it."""
    return outline(page).replace(f"servewise {__version__}", "servewise VERSION")
