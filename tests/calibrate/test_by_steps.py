"""Calibrations on the steps of servers whose coefficients are known."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.calibrate.served import TRUTH, WHERE, closed_run

from servewise.calibrate.by_steps import StepRun, calibrate_on_steps
from servewise.calibrate.calibrated import Calibrated
from servewise.calibrate.from_steps import fit_steps, sample_of
from servewise.calibrate.holdout import BLOCKS, Holdout, everything
from servewise.calibrate.observed_steps import observed_steps
from servewise.errors import InputError
from servewise.steptime.server_coefficients import ServerCoefficients
from servewise.steptime.server_roofline import ServerRoofline
from servewise.steptime.shape import decode_shape, prefill_shape

COUNTS = {1: 20, 4: 60, 8: 80, 16: 100, 32: 120}


def runs_at(*streams: int, seed: int, truth: ServerCoefficients = TRUTH, noise: float = 0.05) -> list[StepRun]:
    """Closed loops at those numbers of streams."""
    runs = []
    for each in streams:
        run = closed_run(each, COUNTS[each], seed + each, truth, noise)
        runs.append(StepRun(load=f"{each} streams", steps=observed_steps(run.requests, run.steps)[0]))
    return runs


def calibrated(*streams: int, seed: int = 1, truth: ServerCoefficients = TRUTH, noise: float = 0.05) -> Calibrated:
    """The calibration on closed loops at those numbers of streams."""
    return calibrate_on_steps(WHERE, runs_at(*streams, seed=seed, truth=truth, noise=noise), Holdout(0.2), seed=seed)


@pytest.fixture(scope="module")
def wide() -> Calibrated:
    """A calibration on 1 to 32 streams."""
    return calibrated(1, 4, 16, 32)


@pytest.mark.slow
def test_known_coefficients_lie_in_their_intervals() -> None:
    """Over several noisy runs, at least nine in ten stated intervals (of 95%) hold the truth."""
    held = stated = 0
    for seed in (10, 20, 30, 40, 50):
        sample = sample_of([run.steps for run in runs_at(1, 8, 32, seed=seed)], everything)
        for name, found in fit_steps(WHERE, sample, seed).fitted.items():
            stated += 1
            held += found.ci95[0] <= getattr(TRUTH, name) <= found.ci95[1]

    assert stated >= 20
    assert held >= 0.9 * stated


def test_steps_not_seen_are_predicted(wide: Calibrated) -> None:
    """Steps within the range, of sizes that no run held, come out within 3% of the true server's."""
    found, true = ServerRoofline(WHERE, wide.told.coefficients), ServerRoofline(WHERE, TRUTH)
    shapes = [decode_shape(2, 400), decode_shape(12, 500), decode_shape(24, 300), prefill_shape(1, 600)]

    assert [found.seconds(each) for each in shapes] == pytest.approx([true.seconds(each) for each in shapes], rel=0.03)


def test_more_streams_than_seen_are_predicted() -> None:
    """From 1 and 8 streams, steps of 16 and 32 come out within 5%: prompts tell what many rows cost."""
    found, true = ServerRoofline(WHERE, calibrated(1, 8).told.coefficients), ServerRoofline(WHERE, TRUTH)
    for batch in (16, 32):
        shape = decode_shape(batch, 400)
        assert found.seconds(shape) == pytest.approx(true.seconds(shape), rel=0.05)


def test_errors_are_those_of_the_noise(wide: Calibrated) -> None:
    """With steps off by 5% (one deviation) the median held-out error is 0.67 deviations of it, 3.4%."""
    assert wide.train.median == pytest.approx(0.034, rel=0.15)
    assert wide.heldout.median == pytest.approx(0.034, rel=0.2)
    assert [each.load for each in wide.levels] == ["1 streams", "4 streams", "16 streams", "32 streams"]
    assert all(abs(each.bias - 1.0) < 0.03 for each in wide.levels)
    assert all(each.left_out.n > 0 for each in wide.levels)


def test_one_stream_cannot_tell_a_sequence_from_a_step() -> None:
    """At one stream every step has one sequence: its overhead and the step's are one number, and neither is stated."""
    found = calibrated(1).told

    assert "step_s" in found.assumed
    assert "weight_efficiency" in found.assumed
    assert "cannot tell it from" in found.assumed["step_s"].why
    assert "32 or more" in found.assumed["step_s"].measure


def test_request_latency_is_never_told_by_steps(wide: Calibrated) -> None:
    """What lies outside of steps is not stated, and the cure names request records."""
    assert wide.told.assumed["request_s"].value == 0.0
    assert "request records" in wide.told.assumed["request_s"].measure


def test_every_coefficient_is_stated_or_assumed(wide: Calibrated) -> None:
    """No coefficient is missing or in both lists, and intervals hold their values."""
    fitted, assumed = wide.told.fitted, wide.told.assumed

    assert set(fitted) | set(assumed) == set(TRUTH.to_dict())
    assert not set(fitted) & set(assumed)
    assert all(each.ci95[0] <= each.value <= each.ci95[1] for each in fitted.values())


def test_a_server_without_overhead_has_none() -> None:
    """Where the true overheads are 0, what is found of them is under a hundredth of the step."""
    clean = replace(TRUTH, step_s=0.0, sequence_s=0.0)
    found = calibrated(1, 8, 32, truth=clean, noise=0.01).told.coefficients
    step_s = ServerRoofline(WHERE, clean).seconds(decode_shape(8, 300))

    assert 8 * found.sequence_s < 0.03 * step_s


def test_range_is_what_was_seen(wide: Calibrated) -> None:
    """The valid range spans the sequences that decoded at once and the prompt tokens of a step."""
    assert wide.valid_range.decode_sequences[0] == 1
    assert 16 < wide.valid_range.decode_sequences[1] <= 32
    assert wide.valid_range.prefill_tokens[1] <= 2048


def test_too_few_steps_are_refused() -> None:
    """A handful of steps is no calibration."""
    run = StepRun(load="x", steps=observed_steps(closed_run(1, 1, 1).requests, closed_run(1, 1, 1).steps)[0][:8])
    with pytest.raises(InputError, match="too few to fit"):
        calibrate_on_steps(WHERE, [run], Holdout(0.2))


def test_holdout_takes_its_share() -> None:
    """Of the stretches of a run, a share of 0.25 is a quarter, and 0 none."""
    assert sum(Holdout(0.25).holds(each) for each in range(BLOCKS)) == BLOCKS // 4
    assert not any(Holdout(0.0).holds(each) for each in range(BLOCKS))
