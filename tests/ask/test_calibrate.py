"""``calibrate`` as users ask it: run directories in, a TOML file out that the predicting questions take."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tests.ask.made import chat
from tests.calibrate.served import POLICY, TRUTH, WHERE, closed_run

from servewise.answer import Answer
from servewise.ask.calibrate import calibrate, runs_in
from servewise.ask.run import KeptRun
from servewise.ask.simulate import simulate
from servewise.ask.steptime import steptime
from servewise.conditions import Conditions
from servewise.errors import InputError
from servewise.records.begun import CUT
from servewise.records.origin import Origin
from servewise.steptime.calibration_file import load_calibration
from servewise.steptime.server_coefficients import COEFFICIENTS
from servewise.steptime.server_roofline import ServerRoofline
from servewise.steptime.shape import decode_shape

CONDITIONS = Conditions(hardware="1 x a CPU", load="closed loop", lengths="varied", precision="bf16")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of runs at 1 and 16 streams."""
    folder = tmp_path_factory.mktemp("runs")
    for streams, count in ((1, 12), (16, 60)):
        run = closed_run(streams, count, streams, noise=0.02)
        place = folder / f"streams-{streams}"
        name, words, origin = POLICY.name, POLICY.describe, Origin(command="test")
        with KeptRun(place, CONDITIONS, policy=name, words=words, rate_per_s=streams, seed=1, origin=origin) as kept:
            kept.finish(run)
    return folder


@pytest.fixture(scope="module")
def asked(runs: Path) -> tuple[Answer, Path]:
    """The answer and its file."""
    target = runs.parent / "server.toml"
    return calibrate(runs, WHERE.model, WHERE.accelerator, output=target), target


def test_answer_has_contracts_keys(asked: tuple[Answer, Path]) -> None:
    """Coefficients with value and interval, train and held-out errors, valid range; JSON throughout."""
    result = json.loads(asked[0].dumps())["result"]

    assert set(result["coefficients"]) == set(COEFFICIENTS)
    assert all({"value", "ci95"} <= set(each) for each in result["coefficients"].values())
    assert {"median", "p90"} <= set(result["train_error"])
    assert {"median", "p90"} <= set(result["heldout_error"])
    assert result["valid_range"]["decode_sequences"][0] == 1
    assert result["source"] == "step records"


def test_unidentified_is_null_with_what_to_measure(asked: tuple[Answer, Path]) -> None:
    """What the runs cannot tell has no value, and its caveat says what to measure next."""
    found = asked[0].result["coefficients"]["request_s"]

    assert found["value"] is None
    assert found["next"].startswith("measure ")
    assert "coefficient-not-identified" in {each.code for each in asked[0].caveats}


def test_file_times_steps(asked: tuple[Answer, Path]) -> None:
    """The file's estimator gives the true server's steps within 3%, and names where it was fitted."""
    true = ServerRoofline(WHERE, TRUTH)
    answer = steptime(WHERE.model, WHERE.accelerator, batch=[1, 8], context=300, estimator=str(asked[1]))
    found = [row["step_s"] for row in answer.result["rows"]]

    assert found == pytest.approx([true.seconds(decode_shape(each, 300)) for each in (1, 8)], rel=0.03)
    assert answer.conditions.estimator == "calibrated (server.toml)"
    assert load_calibration(asked[1]).setting.model == WHERE.model.name


def test_file_runs_a_simulation(asked: tuple[Answer, Path]) -> None:
    """``simulate`` takes the file too: intervals hold its spread, caveats name the coefficients that are assumed."""
    answer = simulate(WHERE.model, WHERE.accelerator, workload=chat(30), rate=1.0, seeds=1, estimator=str(asked[1]))

    row = answer.result["rows"][0]
    low, high = row["tpot_s"]["ci95_mean"]
    assert row["completed"] == 30
    assert high / low > 1.035  # the file's spread, a hundredth at least, 1.96 times to either side
    assert "coefficient-not-identified" in {each.code for each in answer.caveats}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"output": "server.json"}, "must end in .toml"),
        ({"output": "nowhere/server.toml"}, "folder does not exist"),
        ({"holdout": 0.9}, "holdout"),
        ({"holdout": float("nan")}, "holdout"),
        ({"seed": -1}, "seed"),
    ],
)
def test_wrong_settings_are_refused(runs: Path, change: dict[str, object], told: str) -> None:
    """Each wrong setting is one clear line, before any work."""
    with pytest.raises(InputError, match=told):
        calibrate(runs, WHERE.model, WHERE.accelerator, **change)  # type: ignore[arg-type]


def test_no_runs_are_refused(tmp_path: Path) -> None:
    """A missing folder, an empty one and an empty list are refused with what a run is."""
    given: list[Path | list[Path]] = [tmp_path / "none", tmp_path, []]
    for each in given:
        with pytest.raises(InputError, match="run"):
            calibrate(each, WHERE.model, WHERE.accelerator)


def test_a_run_that_was_cut_off_and_made_again_is_in_no_figure(runs: Path, tmp_path: Path) -> None:
    """``bench --resume`` sets it aside in ``cut/``: the fit takes the runs beside that folder."""
    for each in runs.iterdir():
        shutil.copytree(each, tmp_path / each.name)
    shutil.copytree(runs / "streams-1", tmp_path / CUT / "streams-1-1")

    assert [path.name for path, _ in runs_in(tmp_path)] == ["streams-1", "streams-16"]
