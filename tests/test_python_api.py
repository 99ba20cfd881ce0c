"""The Python functions are as good as the commands: the same names, the same options."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import Any, get_type_hints

import click
import pytest
from tests.report.documents import answer

import servewise
from servewise.ask.bench_options import BenchOptions
from servewise.ask.deploying import Options
from servewise.cli.main import COMMANDS
from servewise.errors import InputError, UnknownName

NOT_ASKED = {"app", "completion"}  # a page and a script for a shell, no questions
ABOUT_THE_TERMINAL = {"as_json", "output", "beside", "check", "fail_on", "models_dir", "hub_cache", "emit_dir"}
OTHERWISE = {  # where the command's word means something else in Python
    ("fleet", "router_set"): "router_settings",
    ("bench", "self_test"): "servewise.self_test",
    ("bench", "quality_against"): "servewise.ask.quality.quality",
    ("bench", "quality_precision"): "servewise.ask.quality.quality",
    ("bench", "quality_model"): "servewise.ask.quality.quality",
    ("models_write", "format_"): "format",
    ("check", "file"): "source",
    ("demo", "report"): "servewise.report",
}


def commands() -> Iterator[tuple[str, click.Command]]:
    """Every command that asks something, by its function's name."""
    for name in COMMANDS:
        if name in NOT_ASKED:
            continue
        command = import_module(f"servewise.cli.{name}").command
        if not isinstance(command, click.Group):
            yield name, command
            continue
        if command.invoke_without_command:
            yield name, command
        context = click.Context(command)
        for each in command.list_commands(context):
            found = command.get_command(context, each)
            assert found is not None
            yield f"{name}_{each.replace('-', '_')}", found


def taken(name: str) -> set[str]:
    """The names that a function takes, with those of the options that it passes on."""
    function = getattr(servewise, name)
    found = set(inspect.signature(function).parameters)
    if name in ("bench",):
        found |= {each.name for each in fields(BenchOptions)}
    if name == "serve":
        from servewise.ask.serve import ServeOptions

        found |= {each.name for each in fields(ServeOptions)}
    if name == "experiment_serve_small":
        from servewise.ask.experiment_serve_small import experiment_serve_small

        found |= {*inspect.signature(experiment_serve_small).parameters, "llama_server"}
    return found | (set(get_type_hints(Options)) if "options" in found else set())


@pytest.mark.parametrize(("name", "command"), [pytest.param(*each, id=each[0]) for each in commands()])
def test_every_command_has_its_function_with_the_same_options(name: str, command: click.Command) -> None:
    """Each option of the command is a parameter of the function, but for what is about a terminal."""
    options = {str(param.name) for param in command.params} - ABOUT_THE_TERMINAL
    missing = {each for each in options - taken(name) if (name, each) not in OTHERWISE}

    assert name in servewise.__all__
    assert missing == set()


def test_options_by_another_name_exist() -> None:
    """What the table of exceptions says is there."""
    for (name, _), said in OTHERWISE.items():
        module, _, attribute = said.rpartition(".")
        place: Any = import_module(module) if module else None
        assert hasattr(place, attribute) if place else said in inspect.signature(getattr(servewise, name)).parameters


def test_bench_refuses_what_it_does_not_know() -> None:
    """A mistyped option is answered with the nearest, and what every figure needs is asked for, before any traffic."""
    with pytest.raises(UnknownName, match="did you mean concurrency"):
        servewise.bench("http://x", model="m", hardware="h", precision="p", concurency=4)
    with pytest.raises(InputError, match="lacks hardware, precision"):
        servewise.bench("http://x", model="m")


def test_report_takes_answers_and_files(tmp_path: Path) -> None:
    """Answers from Python and documents from files stand in one report; its JSON holds both."""
    (tmp_path / "size.json").write_text(answer("size").dumps())
    found = servewise.report(answer("plan"), tmp_path / "size.json", output=tmp_path / "r.html", title="Both")

    assert set(found.result["sections"]) == {"The plan", "What fits"}
    assert "Both" in (tmp_path / "r.html").read_text()


def test_runs_from_python_stand_side_by_side() -> None:
    """Two simulations of one load give a section in which each row is told by its run."""
    found = servewise.report(answer("simulate"), answer("simulate"))

    assert "Side by side" in found.result["sections"]


def test_importing_the_package_costs_nothing() -> None:
    """Listing its names imports no question."""
    assert {"bench", "plan", "probe_kv", "report"} <= set(dir(servewise))
