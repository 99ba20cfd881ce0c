"""Every `$ servewise ...` line of the README and the documents is a command that works as printed."""

from __future__ import annotations

from pathlib import Path

import pytest
from docs.site.examples import DOCS, ExampleFailed, blocks, commands, session, with_outputs

README = DOCS.parent / "README.md"
PAGES = [each for each in sorted(DOCS.rglob("*.md")) if "_build" not in each.parts and blocks(each.read_text())]
SLOW = ("simulate", "plan", "study", "demo", "fleet")


def of_page(text: str) -> list[str]:
    """A page's commands, in order."""
    return [command for block in blocks(text) for command in commands(block)]


def marked(command: str) -> object:
    """The command as a parameter, the ones that simulate marked slow."""
    words = command.split()
    return pytest.param(command, id=" ".join(words[1:4]), marks=[pytest.mark.slow] if words[1] in SLOW else [])


@pytest.mark.parametrize("command", [marked(each) for each in of_page(README.read_text())])
def test_commands_of_the_readme_work(command: str) -> None:
    """The command ends as written in a folder that holds a config of the user's own and a start-up log."""
    with session() as run:
        run(command)


@pytest.mark.slow
@pytest.mark.parametrize("page", [pytest.param(each, id=str(each.relative_to(DOCS))) for each in PAGES])
def test_commands_of_a_page_work(page: Path) -> None:
    """A page's commands, one after another in one folder, end as written."""
    with session() as run:
        for command in of_page(page.read_text()):
            run(command)


def test_there_are_examples() -> None:
    """The README and the pages show commands, so that the tests above cannot pass on nothing."""
    assert len(of_page(README.read_text())) >= 8
    assert len(PAGES) >= 12


def test_what_a_command_prints_stands_below_it() -> None:
    """Each command of a block is followed by its own output, and the rest of the page stays as it is."""
    page = "before\n\n```console\n$ servewise --version\n$ servewise \\\n    --version\n```\n\nafter\n"
    shown = with_outputs(page)

    assert shown.startswith("before\n")
    assert shown.rstrip().endswith("after")
    assert shown.count(":class: printed") == 2
    assert shown.index("$ servewise --version") < shown.index(":class: printed") < shown.index("$ servewise \\")


def test_a_command_that_ends_otherwise_fails_the_page() -> None:
    """A wrong command is an error, and so is a gate that holds where the page says that it does not."""
    with session() as run:
        for command in ("servewise size no-such-model", "servewise --version || test $? -eq 1", "ls"):
            with pytest.raises(ExampleFailed):
                run(command)
