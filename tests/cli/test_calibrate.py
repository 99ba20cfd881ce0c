"""``servewise calibrate`` and ``servewise loop`` at the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.running import invoke, workload

DEVICE = ["smollm2-135m", "--peak-flops", "443G", "--bandwidth", "60GB/s", "--memory", "30GB"]


@pytest.fixture
def run(tmp_path: Path) -> str:
    """A simulated run's directory."""
    folder = str(tmp_path / "run")
    asked = ["--workload", workload(tmp_path), "--rate", "1", "--seeds", "1", "--run-dir", folder]
    assert invoke("simulate", *DEVICE, *asked).exit_code == 0
    return folder


def test_from_a_run_to_a_prediction(run: str, tmp_path: Path) -> None:
    """A run gives a file and one JSON document; ``steptime`` takes the file."""
    file = str(tmp_path / "server.toml")
    found = invoke("calibrate", run, *DEVICE, "--output", file, "--json")
    document = json.loads(found.stdout)

    assert found.exit_code == 0
    assert document["schema"] == "servewise.calibrate/1"
    assert document["result"]["file"] == file
    assert {"coefficients", "train_error", "heldout_error", "valid_range"} <= set(document["result"])
    timed = invoke("steptime", *DEVICE, "--estimator", file, "--batch", "1", "--json")
    assert json.loads(timed.stdout)["conditions"]["estimator"] == "calibrated (server.toml)"


def test_tables_for_people(run: str, tmp_path: Path) -> None:
    """Without --json it says what the runs tell, what they cannot, and how far it is off."""
    found = invoke("calibrate", run, *DEVICE, "-o", str(tmp_path / "server.toml"))

    assert found.exit_code == 0
    for title in ("What they cannot tell", "Error by load", "Where it holds"):
        assert title in found.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ["calibrate", "nowhere", *DEVICE, "-o", "server.toml"],
        ["calibrate", *DEVICE, "-o", "server.toml"],
        ["calibrate", "nowhere", *DEVICE],
        ["loop", "http://127.0.0.1:9"],
    ],
    ids=["no run there", "no run named", "no output", "loop without options"],
)
def test_wrong_input_is_exit_code_2(arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wrong input ends with 2, one line on stderr and nothing on stdout."""
    monkeypatch.chdir(tmp_path)
    found = invoke(*arguments)

    assert found.exit_code == 2
    assert found.stdout == ""
    assert "Traceback" not in found.stderr
    assert not list(tmp_path.glob("*.toml"))
