"""Draft lengths by the estimator, against the closed forms of ``techniques.speculation``."""

from __future__ import annotations

import pytest

from servewise.batching.speculative.acceptance import Acceptance
from servewise.simulate.speculating.drafters import DraftModel, Ngram
from servewise.simulate.speculating.lengths import LOOK_AGAIN_STEPS, BestLength, MeasuredLength, length_rows
from servewise.steptime.ideal import IdealRoofline, two_term
from servewise.techniques.speculation import speculation_rows


def flat(step_s: float) -> IdealRoofline:
    """A step of that many seconds, whatever it holds."""
    return two_term(weight_bytes=step_s * 1e12, kv_bytes_per_token=0, flops_per_token=0, bandwidth=1e12, peak=1e18)


def bound() -> IdealRoofline:
    """Memory-bound up to 100 tokens a step, compute-bound above."""
    return two_term(weight_bytes=1e10, kv_bytes_per_token=0, flops_per_token=1e8, bandwidth=1e12, peak=1e12)


def test_memory_bound_rows_are_leviathans() -> None:
    """Where a verification costs one step, the rows are theorem 3.8's: a = 0.8, c = 0.128."""
    rows = length_rows(flat(1.0), DraftModel(flat(0.128)), [0.8] * 8, 4, 4000)

    for found, expected in zip(rows, speculation_rows(0.8, 0.128, 8), strict=True):
        assert found.speedup == pytest.approx(expected.speedup)


def test_the_best_length_fades_with_the_batch() -> None:
    """a = 0.8, free drafts: long at batch 1; at 100 sequences each token costs its own arithmetic, and none pays."""
    length = BestLength(bound(), Ngram(), Acceptance((0.8,)), 8)
    chosen = [length.choose(batch, batch * 500) for batch in (1, 20, 40, 100)]

    assert chosen == sorted(chosen, reverse=True)
    assert (chosen[0], chosen[-1]) == (8, 0)


def test_a_measured_length_comes_to_the_best() -> None:
    """After many steps that keep as a = 0.3 would, the choice is that of a = 0.3 known; before, of the prior's 0.7."""
    measured = MeasuredLength(flat(1.0), DraftModel(flat(0.1)), 8)
    known = BestLength(flat(1.0), DraftModel(flat(0.1)), Acceptance((0.3,)), 8)
    before = measured.choose(1, 500)
    for _ in range(500):
        measured.observe(8, [700, 210, 63, 19, 6, 1, 1, 0, 0])

    assert before > measured.choose(1, 500) == known.choose(1, 500)


def test_a_measured_length_looks_again() -> None:
    """Where nothing stands no draft pays; after 64 steps without one, one token is tried."""
    measured = MeasuredLength(flat(1.0), DraftModel(flat(0.5)), 4)
    for _ in range(300):
        measured.observe(1, [100, 0])
    assert measured.choose(1, 500) == 0
    for _ in range(LOOK_AGAIN_STEPS + 1):
        measured.observe(0, [100])

    assert measured.choose(1, 500) == 1
