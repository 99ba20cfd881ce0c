"""The whole experiment, with stand-ins for the servers."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("httptools")
pytest.importorskip("orjson")

from servewise.ask import experiment_serve_small as whole
from servewise.ask.experiment_serve_small import experiment_serve_small
from servewise.ask.serve_small.launching import Places
from servewise.ask.serve_small.machine import Gauge
from servewise.errors import InputError, RunFailed
from servewise.measure.servers.launch import Launch

MOCK = Path(__file__).parents[2] / "measure" / "servers" / "stand_in.py"


@dataclass(frozen=True)
class StandIn:
    """A server of exact times in the place of a real one."""

    broken: bool = False

    @property
    def name(self) -> str:
        return "stand-in"

    def launch(self, port: int) -> Launch:
        command = (sys.executable, str(MOCK), str(port), *(["broken"] if self.broken else []))
        return Launch(command=command, model="mock", version="1", health="/v1/models", grace_s=0.3, patience_s=60.0)


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Stand-ins; the names of variants that were started, and which server is broken."""
    state: dict[str, Any] = {"started": [], "broken": ""}

    def launcher_of(variant: Any, *_: Any) -> StandIn:
        state["started"].append(variant.name)
        return StandIn(broken=variant.server == state["broken"])

    class NoFiles:
        def __init__(self, *_: Any) -> None:
            pass

    monkeypatch.setattr(whole, "launcher_of", launcher_of)
    monkeypatch.setattr(whole, "ModelFiles", NoFiles)
    monkeypatch.setattr(Gauge, "read", lambda *_: {"bandwidth_bytes_per_s": 6e10, "others_share": 0.0})
    return state


def run(folder: Path, **options: Any) -> Any:
    """The experiment on two of the servers, small."""
    places = Places(environments=folder / "environments", models=folder / "models")
    given: dict[str, Any] = {
        "servers": ("llamacpp", "vllm"),
        "parts": ("16-bit", "prefix"),
        "streams": (1, 2),
        "prefix_streams": (1, 2),
    }
    return experiment_serve_small(run_dir=folder / "runs", places=places, **(given | options))


@pytest.mark.slow
def test_every_row_has_its_server_its_load_and_its_runs(servers: dict[str, Any], tmp_path: Path) -> None:
    """Two servers, three variants each, two loads: twelve rows, each with figures and run folders."""
    found = run(tmp_path)
    assert found.ended == "whole"
    assert not any(row["partial"] for row in found.answer.result["rows"])
    rows = found.answer.result["rows"]
    assert len(rows) == 12
    for row in rows:
        assert row["completed"] > 0
        assert row["errors"] == 0
        assert row["ttft_s"]["p50"] > 0
        assert row["output_tokens_per_s"] > 0
        assert row["bandwidth_bytes_per_s"] == 6e10
        assert 0 <= row["cached_share"] <= 1
        assert all((Path(each) / "run.json").exists() for each in row["run_dirs"])
    assert {(row["part"], row["prefix_cache"]) for row in rows} == {
        ("16-bit", False),
        ("prefix", False),
        ("prefix", True),
    }
    assert "128 tokens in, 64 out" in found.answer.conditions.lengths


def test_what_is_measured_is_not_measured_again(servers: dict[str, Any], tmp_path: Path) -> None:
    """The second call starts nothing and gives the same rows; a run that was lost is made again, alone."""
    first = run(tmp_path, parts=("16-bit",))
    servers["started"].clear()
    again = run(tmp_path, parts=("16-bit",))
    assert servers["started"] == []
    assert again.answer.result["rows"] == first.answer.result["rows"]
    Path(first.answer.result["rows"][0]["run_dirs"][0], "run.json").unlink()
    third = run(tmp_path, parts=("16-bit",))
    assert servers["started"] == ["llamacpp-bf16"]
    assert len(third.answer.result["rows"]) == 4


def test_a_server_that_does_not_come_up_is_told_and_the_others_are_measured(
    servers: dict[str, Any], tmp_path: Path
) -> None:
    """Its log's end is in the caveat; the other's rows are there."""
    servers["broken"] = "llamacpp"
    found = run(tmp_path, parts=("16-bit",))
    assert found.ended == "server"
    assert {row["server"] for row in found.answer.result["rows"]} == {"vLLM"}
    (caveat,) = (each for each in found.answer.caveats if each.code == "server-failed")
    assert "no such model file" in caveat.message


def test_only_broken_servers_are_a_failed_run(servers: dict[str, Any], tmp_path: Path) -> None:
    """Without a single row there is no answer."""
    servers["broken"] = "vllm"
    with pytest.raises(RunFailed, match="no such model file"):
        run(tmp_path, servers=("vllm",), parts=("16-bit",))


def test_an_interrupt_stops_the_server_and_gives_what_ended(
    servers: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C in the second run: the first one's row is in the answer, marked as partial."""
    done: list[int] = []

    def progress(count: int, _whole: int) -> None:
        done.append(count)
        raise KeyboardInterrupt

    found = run(tmp_path, parts=("16-bit",), progress=progress)
    assert done == [1]
    assert found.ended == "interrupted"
    assert len(found.answer.result["rows"]) == 1
    assert "partial-run" in {each.code for each in found.answer.caveats}


def test_a_folder_of_other_settings_is_refused(servers: dict[str, Any], tmp_path: Path) -> None:
    """Rows of different settings would stand side by side as if they were equal."""
    run(tmp_path, servers=("vllm",), parts=("16-bit",), streams=1)
    with pytest.raises(InputError, match="other settings"):
        run(tmp_path, servers=("vllm",), parts=("16-bit",), streams=1, requests=5)


def test_a_folder_that_holds_something_else_is_refused(servers: dict[str, Any], tmp_path: Path) -> None:
    """Nothing is written among files that are not the experiment's."""
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "diary.txt").write_text("dear diary")
    with pytest.raises(InputError, match="holds no experiment"):
        run(tmp_path)
