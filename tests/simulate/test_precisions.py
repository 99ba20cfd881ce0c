"""Precisions through the whole simulator: weights, KV and activations each change bytes, FLOPs and capacity by hand."""

from __future__ import annotations

import pytest
from tests.steptime.known import LLAMA_31_8B, accelerator

from servewise.batching.policies import Continuous
from servewise.deployment.capacity import KvCapacity, kv_capacity
from servewise.deployment.deployment import Deployment
from servewise.precision import FORMATS
from servewise.simulate.run import Run, simulate
from servewise.steptime.api import estimator_for
from servewise.workload.request import Request

BANDWIDTH, MEMORY, BF16_PEAK, FP8_PEAK = 2e12, 24e9, 300e12, 600e12
HIDDEN, LAYERS, VOCAB = 4096, 32, 128256
LAYER = 2 * HIDDEN * HIDDEN + 2 * HIDDEN * 1024 + 3 * HIDDEN * 14336  # q and o, k and v, the feed-forward
NORMS = 2 * HIDDEN
KV_VALUES = LAYERS * 2 * 1024  # a token, 8 KV heads of 128


def served(weights: str | None = None, kv: str = "bf16", activations: str = "bf16") -> Deployment:
    """Llama 3.1 8B on a made-up device of 24 GB, 2 TB/s and 300 TFLOP/s in bf16, twice that in fp8."""
    return Deployment(
        model=LLAMA_31_8B,
        accelerator=accelerator("made-up", BANDWIDTH, MEMORY, bf16=BF16_PEAK, fp8=FP8_PEAK),
        kv=FORMATS[kv],
        activations=FORMATS[activations],
        weights=FORMATS[weights] if weights else None,
    )


def ran(deployment: Deployment, *requests: Request, blocks: int | None = None) -> Run:
    """``requests`` on an ideal server of ``deployment``, on its own pool or one of ``blocks``."""
    capacity = kv_capacity(deployment)
    assert isinstance(capacity, KvCapacity)
    clock = estimator_for(deployment, "ideal")
    return simulate(requests, Continuous(), clock, blocks=blocks or capacity.blocks, block_tokens=16)


def tpot_s(run: Run) -> float:
    """Of the only request [s]."""
    made = run.requests.output_tokens[0] - 1
    return (run.requests.end_s[0] - run.requests.first_token_s[0]) / made


def read_bytes(bits: float) -> float:
    """Weights that a decode step reads: layers in ``bits``, norms, head and a row of the embedding in 16 [bytes]."""
    return LAYERS * (LAYER * bits / 8 + NORMS * 2) + VOCAB * HIDDEN * 2 + HIDDEN * 2


@pytest.mark.parametrize(("weights", "bits"), [(None, 16), ("fp8", 8), ("int4", 4)])
@pytest.mark.parametrize(("kv", "kv_bytes"), [("bf16", 2), ("fp8", 1)])
def test_tpot_is_the_bytes_read(weights: str | None, bits: float, kv: str, kv_bytes: float) -> None:
    """A token of a sequence alone takes its weights and its KV over the bandwidth: int4 a quarter of the layers'."""
    run = ran(served(weights, kv), Request(0, 0.0, 4000, 1001))
    context = 4000 + (1 + 1000) / 2  # the mean of 4,001 to 5,000
    seconds = (read_bytes(bits) + context * KV_VALUES * kv_bytes) / BANDWIDTH

    assert tpot_s(run) == pytest.approx(seconds, rel=1e-6)


def test_fp8_kv_doubles_the_pool_and_saves_its_own_bytes_alone() -> None:
    """Half the bytes a token make twice the blocks; a step saves half of the KV's time and nothing of the weights'."""
    wide, narrow = kv_capacity(served(kv="bf16")), kv_capacity(served(kv="fp8"))
    assert isinstance(wide, KvCapacity)
    assert isinstance(narrow, KvCapacity)
    request = Request(0, 0.0, 4000, 1001)
    saved_s = tpot_s(ran(served(kv="bf16"), request)) - tpot_s(ran(served(kv="fp8"), request))

    assert wide.kv_bytes_per_token == KV_VALUES * 2
    assert narrow.kv_bytes_per_token == KV_VALUES
    assert abs(narrow.blocks - 2 * wide.blocks) <= 1
    assert saved_s == pytest.approx(4500.5 * KV_VALUES / BANDWIDTH, rel=1e-6)


def test_narrow_weights_leave_room_for_kv() -> None:
    """What int4 layers save goes to the pool, byte for byte."""
    wide, narrow = kv_capacity(served()), kv_capacity(served("int4"))
    assert isinstance(wide, KvCapacity)
    assert isinstance(narrow, KvCapacity)

    assert narrow.kv_budget_bytes - wide.kv_budget_bytes == pytest.approx(LAYERS * LAYER * 1.5, rel=1e-3)


@pytest.mark.parametrize(
    ("weights", "activations", "peak"),
    [
        (None, "bf16", BF16_PEAK),
        ("fp8", "bf16", BF16_PEAK),  # weight-only: the product runs in the wider format
        ("int4", "bf16", BF16_PEAK),
        ("fp8", "fp8", FP8_PEAK),
    ],
)
def test_ttft_is_the_arithmetic(weights: str | None, activations: str, peak: float) -> None:
    """3,000 tokens are bound by FLOPs: layers at the peak of the wider operand, head and attention in bf16."""
    run = ran(served(weights, activations=activations), Request(0, 0.0, 3000, 2))
    linear = 2 * LAYERS * (LAYER + NORMS) * 3000
    pairs = 3000 * 3001 / 2
    attention = 2 * LAYERS * 2 * HIDDEN * pairs
    seconds = linear / peak + attention / BF16_PEAK + 2 * HIDDEN * VOCAB / BF16_PEAK

    assert run.requests.first_token_s[0] == pytest.approx(seconds, rel=1e-3)


def test_fp8_throughout_doubles_all_but_the_head() -> None:
    """With KV in fp8 too, attention runs at the fp8 peak: the first token comes in half the time, the head aside."""
    request = Request(0, 0.0, 3000, 2)
    wide, narrow = ran(served(), request), ran(served("fp8", "fp8", "fp8"), request)
    head_s = 2 * HIDDEN * VOCAB / BF16_PEAK
    first, second = (run.requests.first_token_s[0] - head_s for run in (wide, narrow))

    assert second == pytest.approx(first / 2, rel=1e-3)


def test_preemptions_go_with_the_pool() -> None:
    """Sequences that need 1.5 times a bf16 pool are preempted there, and in an fp8 pool of the same bytes never."""
    each = 16 * 20  # tokens at the end: 20 blocks
    requests = [Request(serial, 0.0, each // 2, each // 2) for serial in range(6)]
    pool_bytes = 80 * 16 * KV_VALUES * 2  # four of the six fit in bf16
    counts = {}
    for kv in ("bf16", "fp8"):
        deployment = served(kv=kv)
        blocks = int(pool_bytes // (16 * KV_VALUES * FORMATS[kv].bits / 8))
        counts[kv] = sum(ran(deployment, *requests, blocks=blocks).requests.preemptions)

    assert counts["bf16"] > 0
    assert counts["fp8"] == 0
