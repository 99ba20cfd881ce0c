"""From a form's values to a command line, as it runs and as a person types it."""

from __future__ import annotations

import shlex
import tomllib

import click
import pytest

from servewise.app.line import Line
from servewise.app.state import state_of
from servewise.app.uploads import name_of
from servewise.app.view import View
from servewise.app.views import VIEWS
from servewise.app.views.own_traffic import OWN
from servewise.app.views.traffic import TRAFFIC
from servewise.cli.main import servewise
from servewise.errors import InputError


def no_files(name: str, text: str) -> str:
    """Where a form wants to write a file: its name."""
    return f"upload:{'0' * 16}/{name}"


@pytest.mark.parametrize("view", VIEWS.values(), ids=lambda view: view.name)
def test_every_field_is_an_option_of_its_command(view: View) -> None:
    """Whatever option a field writes, its view's command has it."""
    command = servewise.get_command(click.Context(servewise), view.command)
    assert command is not None
    known = {option for each in command.params for option in each.opts}
    assert {field.option for field in view.fields if field.option} <= known


@pytest.mark.parametrize("view", VIEWS.values(), ids=lambda view: view.name)
def test_field_names_are_unique(view: View) -> None:
    """An address can mean one field only."""
    assert len({field.name for field in view.fields}) == len(view.fields)


def test_values_that_look_like_options_stay_values() -> None:
    """What somebody puts into an address cannot become an option of the command, such as --output."""
    line = Line("size", ("--output=x",), (("--kv", "--output=x"),))
    assert line.run(str) == ("size", "--kv=--output=x", "--", "--output=x")


def test_a_typed_line_reads_back_as_it_runs() -> None:
    """A shell takes the line that is shown apart into the words that run."""
    line = VIEWS["fit"].line({"model": "llama-3-8b", "memory_utilization": "0.9"}, no_files)
    words = shlex.split(line.typed(str))
    assert words[:3] == ["servewise", "size", "llama-3-8b"]
    assert words[words.index("--memory-utilization") + 1] == "0.9"


def test_targets_are_one_slo() -> None:
    """Two fields of one option are joined as the command reads them."""
    line = TRAFFIC.line({"ttft": "500ms", "tpot": "30ms"}, no_files)
    assert dict(line.options)["--slo"] == "ttft_p95<=500ms, tpot_p95<=30ms"


def test_an_empty_target_is_no_option() -> None:
    """Where no target is given, the command gets none."""
    assert "--slo" not in dict(TRAFFIC.line({"ttft": "", "tpot": ""}, no_files).options)


def test_sliders_become_a_workload_file() -> None:
    """Traffic of one's own is a file that the command reads, with the sliders' numbers in it."""
    written = {}

    def keep(name: str, text: str) -> str:
        written[name] = text
        return no_files(name, text)

    line = TRAFFIC.line({"workload": OWN, "prompt": "512", "shared": "64"}, keep)
    assert "median = 512" in written["traffic.toml"]
    assert "tokens = 64" in written["traffic.toml"]
    assert "--workload traffic.toml" in line.typed(name_of)


@pytest.mark.parametrize("value", ["9" * 9, "nan", "x", "-1", "600\n[trace]"])
def test_a_slider_off_its_ends_is_refused(value: str) -> None:
    """What is no number within a slider's ends, or more than a number, never reaches the file."""
    with pytest.raises(InputError) as found:
        TRAFFIC.line({"workload": OWN, "prompt": value}, no_files)
    assert found.value.where == "prompt"


@pytest.mark.parametrize("value", ["/etc/passwd", "../x", "file://x", "-x", "a b"])
def test_a_path_is_no_name(value: str) -> None:
    """The page reads no file of the machine by its path: only what was uploaded."""
    with pytest.raises(InputError) as found:
        VIEWS["fit"].line({"model": value}, no_files)
    assert found.value.where == "model"


def test_the_address_holds_what_is_not_the_forms_own() -> None:
    """Values that are the form's own do not lengthen the address; what it does not know is told."""
    state = state_of(VIEWS["fit"], [("context", "2048"), ("count", "2"), ("nonsense", "1")])
    assert state.query == "count=2"
    assert state.unknown == ("nonsense",)


def test_values_go_along_to_another_view() -> None:
    """A link to another view takes the values that it has too, and leaves the others."""
    state = state_of(VIEWS["fit"], [("model", "llama-3-8b"), ("context", "512")])
    assert state.link(VIEWS["traffic"]) == "/traffic?model=llama-3-8b"


@pytest.mark.parametrize("written", ["٦٠٠", "6_00", "6e2", "600.0"])
def test_sliders_write_numbers_that_toml_reads(written: str) -> None:
    """Whatever Python takes for a number within the ends stands in the workload file as TOML has numbers."""
    texts = []

    def keep(name: str, text: str) -> str:
        texts.append(text)
        return no_files(name, text)

    TRAFFIC.line({"workload": OWN, "prompt": written}, keep)
    assert tomllib.loads(texts[0])["prompt_tokens"]["median"] == 600
