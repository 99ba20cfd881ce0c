"""Simulated speculation against the closed forms of ``techniques.speculation``."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from servewise.batching.policies import Continuous
from servewise.batching.speculative.acceptance import Acceptance
from servewise.batching.speculative.draft_length import FixedLength
from servewise.batching.speculative.tally import Tally
from servewise.simulate.run import Run, simulate
from servewise.simulate.speculating.drafters import Drafter, DraftModel, Ngram
from servewise.simulate.speculating.speculation import Speculation, fixed
from servewise.steptime.estimator import Estimator
from servewise.steptime.ideal import IdealRoofline, two_term
from servewise.techniques.speculation import batched_speedup, speedup, tokens_by_position, tokens_per_verification
from servewise.workload.request import Request

OUTPUT = 4001


def flat(step_s: float, token_s: float = 0.0) -> IdealRoofline:
    """A step of ``step_s`` seconds, or of ``token_s`` a token where that is longer."""
    weights, flops = step_s * 1e12, token_s * 1e12
    return two_term(weight_bytes=weights, kv_bytes_per_token=0, flops_per_token=flops, bandwidth=1e12, peak=1e12)


def speculating(
    target: Estimator, drafter: Drafter, acceptance: Sequence[float], k: int, requests: list[Request], seed: int = 0
) -> tuple[Run, Tally]:
    """A run of ``requests``, and what was drafted in it."""
    speculation = Speculation(target, drafter, Acceptance(tuple(acceptance)), fixed(k))
    policy, tally = speculation.policy(Continuous(64), seed).counted()
    return simulate(requests, policy, target, beside=speculation.beside), tally


def decode_s(run: Run) -> float:
    """First to last token, of all requests, summed."""
    return sum(end - first for end, first in zip(run.requests.end_s, run.requests.first_token_s, strict=True))


@pytest.mark.parametrize(("acceptance", "k"), [((0.6,), 3), ((0.8,), 5), ((0.9, 0.8, 0.69, 0.56), 4)])
def test_tokens_per_verification(acceptance: tuple[float, ...], k: int) -> None:
    """Their mean over a run is (1 - a^(K+1)) / (1 - a), or the sum by position, within three standard errors."""
    requests = [Request(serial, 0.0, 10, OUTPUT) for serial in range(8)]
    _, tally = speculating(flat(1.0), Ngram(), acceptance, k, requests)
    expected = tokens_per_verification(acceptance[0], k) if len(acceptance) == 1 else tokens_by_position(acceptance)
    shares = [1.0, *tally.survival, 0.0]
    square = sum((place + 1) ** 2 * (shares[place] - shares[place + 1]) for place in range(k + 1))
    error = math.sqrt((square - expected**2) / tally.verifications)

    assert abs(tally.tokens_per_verification - expected) < 3 * error + (k + 1) / OUTPUT  # the ends waste up to K tokens
    assert tally.drafted == k * tally.verifications


@pytest.mark.parametrize(("acceptance", "k", "cost"), [(0.8, 5, 0.128), (0.6, 2, 0.3), (0.5, 7, 0.2)])
def test_speedup_at_batch_one(acceptance: float, k: int, cost: float) -> None:
    """Memory-bound, one request at a time: Leviathan's theorem 3.8, within 3% at 32,000 tokens."""
    requests = [Request(serial, serial * 1e6, 10, OUTPUT) for serial in range(8)]
    run, _ = speculating(flat(1.0), DraftModel(flat(cost)), [acceptance], k, requests)
    found = 8 * (OUTPUT - 1) / decode_s(run)

    assert found == pytest.approx(speedup(acceptance, k, cost), rel=0.03)


def test_certain_acceptance_is_exact() -> None:
    """a = 1, K = 4, 4,000 tokens to go: 800 rounds of a verification and four drafts of a tenth of a step."""
    run, tally = speculating(flat(1.0), DraftModel(flat(0.1)), [1.0], 4, [Request(0, 0.0, 10, OUTPUT)])

    assert decode_s(run) == pytest.approx(800 * 1.4, rel=1e-12)
    assert tally == Tally(verifications=800, drafted=3200, gained=4000, accepted=[800] * 4)


def test_a_compute_bound_batch_loses() -> None:
    """32 requests, 10 ms a step or 1 ms a token: plain 32 ms, a verification of K = 3 takes 128 ms; speed-up E / 4."""
    target = flat(0.010, 0.001)
    requests = [Request(serial, 0.0, 10, OUTPUT) for serial in range(32)]
    run, tally = speculating(target, Ngram(), [0.7], 3, requests)
    steps = [
        seconds
        for seconds, rows, new in zip(
            run.steps.seconds, run.steps.decode_sequences, run.steps.prefill_tokens, strict=True
        )
        if rows == 32 and not new
    ]
    expected = batched_speedup(tokens_per_verification(0.7, 3), 3, step_s=0.032, draft_step_s=0.0, verify_s=0.128)

    assert steps == pytest.approx([0.128] * len(steps))
    assert tally.tokens_per_verification * 0.032 / 0.128 == pytest.approx(expected, rel=0.01)
    assert expected < 1


def test_no_drafts_is_plain_decoding() -> None:
    """K = 0 gives the same records as no speculation at all."""
    target = two_term(weight_bytes=1e9, kv_bytes_per_token=1e5, flops_per_token=1e9, bandwidth=1e12, peak=1e14)
    requests = [Request(serial, serial * 0.01, 50 + serial, 40) for serial in range(30)]
    run, tally = speculating(target, Ngram(), [0.7], 0, requests)
    plain = simulate(requests, Continuous(64), target)

    assert list(run.requests.id) == list(plain.requests.id)
    assert list(run.requests.end_s) == pytest.approx(list(plain.requests.end_s), rel=1e-9)
    assert (tally.verifications, tally.plain) == (0, 30 * 39)
    assert FixedLength(0).choose(5, 500) == 0
