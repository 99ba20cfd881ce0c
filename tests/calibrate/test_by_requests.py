"""Calibrations on nothing but what a client saw, of servers whose coefficients are known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.calibrate.served import POLICY, TRUTH, WHERE, recorded

from servewise.calibrate.by_requests import calibrate_on_requests
from servewise.calibrate.calibrated import Calibrated
from servewise.calibrate.from_requests import predict
from servewise.calibrate.holdout import Holdout
from servewise.calibrate.replay import Served, replay_of
from servewise.calibrate.statistics import measured, ratios
from servewise.errors import InputError
from servewise.records.run_directory import RunRecord

SERVED = Served(policy=POLICY)
FAR = replace(TRUTH, request_s=0.02)
COUNTS = {1: 30, 8: 100, 32: 160}


def calibrated(*records: RunRecord, share: float = 0.2) -> Calibrated:
    """The calibration on those runs."""
    replays = [replay_of(each, each.conditions.load) for each in records]
    return calibrate_on_requests(WHERE, SERVED, replays, Holdout(share))


def off(found: Calibrated, record: RunRecord) -> dict[str, float]:
    """Predicted over measured of a run that was not seen."""
    replay = replay_of(record, "unseen")
    return ratios(predict(WHERE, SERVED, replay, found.told.coefficients), measured(replay))


@pytest.fixture(scope="module")
def few() -> Calibrated:
    """Closed loops at 1 and 8 streams, each latency off by 2%."""
    return calibrated(*(recorded(each, COUNTS[each], each, truth=FAR, noise=0.02) for each in (1, 8)))


@pytest.mark.parametrize("streams", [16, 32])
def test_more_streams_than_seen_are_predicted(few: Calibrated, streams: int) -> None:
    """From 1 and 8 streams, TPOT and the cycle (so throughput) at 16 and 32 come within 5%, TTFT within 10%."""
    found = off(few, recorded(streams, 400, 90 + streams, truth=FAR))

    assert found["tpot_p50"] == pytest.approx(1.0, abs=0.05)
    assert found["cycle_mean"] == pytest.approx(1.0, abs=0.05)
    assert found["ttft_p50"] == pytest.approx(1.0, abs=0.10)


def test_open_loops_are_predicted(few: Calibrated) -> None:
    """From closed loops, Poisson arrivals at about two thirds of the capacity come within the same bars."""
    found = off(few, recorded(None, 200, 77, truth=FAR, rate_per_s=2.5))

    assert found["tpot_p50"] == pytest.approx(1.0, abs=0.05)
    assert found["ttft_p50"] == pytest.approx(1.0, abs=0.10)
    assert found["cycle_mean"] == pytest.approx(1.0, abs=0.05)


def test_stated_intervals_hold_the_truth(few: Calibrated) -> None:
    """Every coefficient that is stated has the truth in its interval."""
    assert few.told.fitted
    for name, each in few.told.fitted.items():
        assert each.ci95[0] <= getattr(FAR, name) <= each.ci95[1], name


def test_what_two_levels_cannot_tell_is_not_stated(few: Calibrated) -> None:
    """A step's overhead and the weights' bandwidth are one number to a client of one model: neither is stated."""
    assert {"step_s", "weight_efficiency"} <= set(few.told.assumed)
    assert set(few.told.assumed) | set(few.told.fitted) == set(TRUTH.to_dict())


def test_one_stream_of_equal_prompts_tells_little() -> None:
    """At 1 stream with prompts of one length, FLOPs cannot be told from what a request takes: neither is stated."""
    found = calibrated(recorded(1, 30, 1, truth=FAR, prompts=(128, 128))).told

    assert "flop_efficiency" in found.assumed or "request_s" in found.assumed
    assert "ramp_tokens" in found.assumed
    assert "16 or more streams" in found.assumed.get("flop_efficiency", found.assumed["ramp_tokens"]).measure or (
        "16 and 64 streams" in found.assumed["ramp_tokens"].measure
    )


@pytest.mark.slow
def test_what_a_request_takes_outside_of_steps_shows() -> None:
    """A server whose requests take 0.3 s outside of steps is found to have far more there than one of 0.02 s."""
    slow = replace(TRUTH, request_s=0.3)
    found = calibrated(recorded(1, 40, 1, truth=slow), recorded(8, 100, 8, truth=slow)).told.coefficients
    quick = calibrated(recorded(1, 40, 1, truth=FAR), recorded(8, 100, 8, truth=FAR)).told.coefficients

    assert found.request_s > 0.1
    assert quick.request_s < 0.06


def test_errors_by_load(few: Calibrated) -> None:
    """Each level has its errors, held out and left out, of 5 latencies each; with 2% noise they are a few percent."""
    assert [each.load for each in few.levels] == ["1 streams", "8 streams"]
    assert all(each.train.n == each.left_out.n == 5 for each in few.levels)
    assert few.train.median < 0.03
    assert few.heldout.n == 10
    assert few.levels[0].left_out.median < 0.3


def test_closed_loops_are_recognised() -> None:
    """A run whose details say nothing is known for a closed loop by its sends, and for an open one likewise."""
    closed = replace(recorded(8, 80, 3), details={})
    opened = replace(recorded(None, 80, 3), details={})

    assert replay_of(closed, "x").concurrency == 8
    assert replay_of(closed, "x").pause_s == pytest.approx(0.001, rel=0.01)
    assert replay_of(opened, "x").concurrency is None


def test_replay_of_the_true_server_is_the_run() -> None:
    """Replayed at the true coefficients, an open run gives its own latencies again, a closed one its percentiles.

    Users of a closed loop that are ready at one moment may swap places.
    """
    opened, closed = replay_of(recorded(None, 80, 3, truth=FAR), "x"), replay_of(recorded(8, 80, 3, truth=FAR), "x")
    again = predict(WHERE, SERVED, opened, FAR)

    assert np.allclose(again.ttft, opened.ttft_s, rtol=1e-6)
    assert np.allclose(again.cycle, opened.cycle_s, rtol=1e-6)
    found = ratios(predict(WHERE, SERVED, closed, FAR), measured(closed))
    assert (found["tpot_p50"], found["cycle_mean"]) == pytest.approx((1.0, 1.0), abs=0.01)


def test_steady_window_of_the_run_is_kept() -> None:
    """Only requests whose end lies in the run's own steady window count."""
    record = recorded(8, 80, 3)
    middle = {"start_s": 5.0, "end_s": 12.0, "by": "end"}
    kept = replay_of(replace(record, details={**record.details, "window": middle}), "x")
    ends = np.array(record.requests.end_s)

    assert len(kept.judged) == int(((ends >= 5.0) & (ends <= 12.0)).sum())


def test_useless_runs_are_refused() -> None:
    """Too few requests, unknown prompts and a warm prefix cache are each refused with what to do."""
    few_requests = recorded(1, 5, 1)
    unknown, warm = recorded(1, 20, 1), recorded(1, 20, 1)
    unknown.requests.prompt_tokens[3] = 0
    for row in range(len(warm.requests)):
        warm.requests.cached_tokens[row] = warm.requests.prompt_tokens[row] // 2

    for record, told in ((few_requests, "too few"), (unknown, "not known"), (warm, "cold cache")):
        with pytest.raises(InputError, match=told):
            replay_of(record, "x")
