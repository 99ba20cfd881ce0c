"""The whole-server estimator: its terms by hand, and its place among the estimators."""

from __future__ import annotations

import math

import pytest
from tests.steptime.known import LLAMA_31_8B, accelerator, deployed

from servewise.steptime.estimator import Estimator
from servewise.steptime.ideal import ideal_roofline
from servewise.steptime.server_coefficients import ServerCoefficients
from servewise.steptime.server_roofline import ServerRoofline
from servewise.steptime.shape import add_chunk, decode_shape, prefill_shape

WHERE = deployed(LLAMA_31_8B, accelerator(bandwidth=2e12, bf16=300e12))
LAYERS = 32 * (2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 14336)  # parameters of the products
HEAD = 4096 * 128256
NORMS = 32 * 2 * 4096
KV_BYTES = 32 * 2 * 8 * 128 * 2  # a token
ROW_BYTES = 4096 * 2  # of the embedding table, gathered


def made(**coefficients: float) -> ServerRoofline:
    """The estimator of those coefficients."""
    return ServerRoofline(WHERE, ServerCoefficients(**coefficients))


def test_decode_by_hand() -> None:
    """A decode step is overheads, root of squares of weights' and FLOPs' times, and the KV bytes' time."""
    batch, context = 16, 1000
    memory = ((LAYERS + NORMS + HEAD) * 2 + batch * ROW_BYTES) / 2e12 / 0.8
    per_row = 2 * (LAYERS + NORMS + HEAD) / 300e12 / 0.5
    compute = per_row * (batch + math.sqrt(4 * batch))
    kv = batch * context * KV_BYTES / 2e12 / 0.6
    clock = made(
        step_s=0.002,
        sequence_s=0.0001,
        weight_efficiency=0.8,
        flop_efficiency=0.5,
        ramp_tokens=4,
        kv_efficiency=0.6,
    )

    expected = 0.002 + batch * 0.0001 + math.hypot(memory, compute) + kv
    assert clock.seconds(decode_shape(batch, context)) == pytest.approx(expected, rel=1e-3)


def test_prefill_pairs_by_hand() -> None:
    """Halving the attention's efficiency adds the prompts' score and value FLOPs at the peak, once more."""
    shape = prefill_shape(1, 4000)
    pairs = 4000 * 4001 / 2
    more = made(attention_efficiency=0.5).seconds(shape) - made(attention_efficiency=1.0).seconds(shape)

    assert more == pytest.approx(32 * 4 * 32 * 128 * pairs / 300e12)


def test_perfect_server_is_near_the_ideal() -> None:
    """Without overhead and with full efficiencies a small decode step is within a hundredth of the ideal roofline."""
    clock: Estimator = made()
    shape = decode_shape(1, 1000)

    assert 1.0 <= clock.seconds(shape) / ideal_roofline(WHERE).seconds(shape) < 1.01


def test_request_latency_is_not_part_of_a_step() -> None:
    """What a request takes outside of steps changes no step."""
    shape = add_chunk(decode_shape(4, 100), 0, 50)

    assert made(request_s=1.0).seconds(shape) == made().seconds(shape)
    assert made(request_s=1.0).request_s == 1.0


def test_overheads_are_told_apart() -> None:
    """The parts name the largest: a server of long pauses between steps is bound by overhead."""
    parts = made(step_s=1.0, sequence_s=0.5).step(decode_shape(2, 10))

    assert parts.overhead_s == pytest.approx(2.0)
    assert parts.bound == "overhead"
    assert parts.communication_s == 0.0


def test_bracket_is_as_wide_as_the_spread() -> None:
    """A spread of 10% puts the slow and the fast server 1.96 deviations away, and neither below the floor."""
    coefficients = ServerCoefficients(
        step_s=0.01, weight_efficiency=0.5, flop_efficiency=0.5, kv_efficiency=0.5, attention_efficiency=0.5
    )
    clock = ServerRoofline(WHERE, coefficients, spread=0.1)
    found = clock.bracket()
    shape = decode_shape(8, 500)

    assert found is not None
    assert found[0].seconds(shape) / clock.seconds(shape) == pytest.approx(math.exp(0.196), rel=1e-6)
    assert found[1].seconds(shape) / clock.seconds(shape) == pytest.approx(math.exp(-0.196), rel=1e-6)
    assert ServerRoofline(WHERE, ServerCoefficients(), spread=0.5).bracket()[1].seconds(shape) == pytest.approx(  # type: ignore[index]
        made().seconds(shape)
    )
    assert made().bracket() is None
