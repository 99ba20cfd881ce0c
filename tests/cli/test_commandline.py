"""The command line that a report shows."""

from __future__ import annotations

import shlex
from pathlib import Path

import click
import pytest
from tests.cli.running import invoke, workload

from servewise.cli.commandline import command_line
from servewise.cli.group import CommandsOnCall

ASKED = ["size", "llama-2-13b", "--accelerator", "a100-80gb", "--context", "1k"]


def test_the_report_shows_what_made_it_and_it_makes_it_again(tmp_path: Path) -> None:
    """The words in the report, run again, give the same document; where the answer went is not among them."""
    first, second = tmp_path / "first.html", tmp_path / "again.html"
    invoke(*ASKED, "--json", f"-o{first}", "--beside")
    markdown = first.with_suffix(".md").read_text().splitlines()
    words = shlex.split(next(line for line in markdown if line.startswith("    servewise ")))
    invoke(*words[1:], "--output", str(second), "--beside")

    assert words == ["servewise", *ASKED]
    assert f"<code>{shlex.join(words)}</code>" in first.read_text()
    assert second.with_suffix(".json").read_text() == first.with_suffix(".json").read_text()


def test_beside_writes_all_three_and_needs_a_name(tmp_path: Path) -> None:
    """HTML, Markdown and JSON of one name; nothing beside nothing."""
    invoke(*ASKED, "-o", str(tmp_path / "x.md"), "--beside")
    refused = invoke(*ASKED, "--beside")

    assert sorted(each.name for each in tmp_path.iterdir()) == ["x.html", "x.json", "x.md"]
    assert (refused.exit_code, refused.stdout) == (2, "")


def test_a_report_never_replaces_its_source(tmp_path: Path) -> None:
    """``report plan.json -o plan.html --beside`` would write plan.json: refused, and the source stays."""
    source = tmp_path / "size.json"
    invoke(*ASKED, "-o", str(source))
    before = source.read_text()
    found = invoke("report", str(source), "-o", str(tmp_path / "size.html"), "--beside")

    assert found.exit_code == 2
    assert "one of the sources" in found.stderr
    assert source.read_text() == before
    assert not (tmp_path / "size.html").exists()


def test_a_report_of_several_comes_back_from_its_json(tmp_path: Path) -> None:
    """The JSON of a report of two answers is a document that report draws again, with both."""
    size, step = tmp_path / "size.json", tmp_path / "step.json"
    invoke(*ASKED, "-o", str(size))
    invoke("steptime", *ASKED[1:4], "-o", str(step))
    invoke("report", str(size), str(step), "-o", str(tmp_path / "both.json"))
    found = invoke("report", str(tmp_path / "both.json"), "-o", str(tmp_path / "again.md"))

    assert found.exit_code == 0
    assert {"## What fits", "## Time of one step"} <= set((tmp_path / "again.md").read_text().splitlines())


def test_processes_are_not_part_of_the_question(tmp_path: Path) -> None:
    """How many cores made it does not stand in the line: results do not depend on it."""
    target = tmp_path / "x.md"
    asked = ["simulate", *ASKED[1:4], "--workload", workload(tmp_path), "--rate", "1", "--seeds", "1"]
    invoke(*asked, "--processes=1", "-o", str(target))

    assert f"    {shlex.join(['servewise', *asked])}" in target.read_text().splitlines()


def test_keys_are_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is secret is left out, however it is written."""
    said: list[str | None] = []

    @click.command("bench")
    @click.option("--api-key")
    @click.option("--header", "headers", multiple=True)
    @click.option("--rate")
    def command(**_: object) -> None:
        said.append(command_line())

    group = CommandsOnCall("servewise", commands_by_module={"bench": ("none", "text")})
    monkeypatch.setattr(group, "get_command", lambda _context, _name: command)
    with pytest.raises(SystemExit):
        group.main(["bench", "--api-key", "s3cret", "--header", "A: s3cret", "--rate", "2", "--api-key=s3cret"])

    assert said == ["servewise bench --rate 2"]


def test_a_function_has_no_command_line() -> None:
    """Called from Python there is none."""
    assert command_line() is None
