"""All-reduces of tensor parallelism: by bytes, ranks and link, against timings that the fit did not see."""

from __future__ import annotations

from itertools import pairwise

import pytest
from tests.steptime.known import LLAMA_31_8B, LLAMA_31_70B, deployed

from servewise.deployment.deployment import Deployment
from servewise.hardware.catalogue import load_accelerator
from servewise.steptime.api import estimator_for
from servewise.steptime.coefficients import AllReduce, Coefficients, Knot
from servewise.steptime.lookup import coefficients_for
from servewise.steptime.messages import Messages
from servewise.steptime.shape import decode_shape

# NCCL all-reduce within a node as Vidur timed it, the large messages where every engine uses NCCL or as fast a kernel:
# (accelerator, ranks, bytes, seconds). https://github.com/microsoft/vidur/tree/7d475133/data/profiling/network
# {h100_dgx,a100_dgx}/all_reduce.csv. The coefficients were fitted to AIConfigurator's tables.
TIMED = [
    ("h100-sxm", 2, 34_471_936, 137e-6),
    ("h100-sxm", 2, 65_536_000, 242e-6),
    ("h100-sxm", 4, 34_471_936, 171e-6),
    ("h100-sxm", 4, 65_536_000, 312e-6),
    ("h100-sxm", 8, 34_471_936, 206e-6),
    ("h100-sxm", 8, 65_536_000, 341e-6),
    ("a100-80gb", 2, 34_471_936, 247e-6),
    ("a100-80gb", 2, 65_536_000, 424e-6),
    ("a100-80gb", 4, 34_471_936, 323e-6),
    ("a100-80gb", 4, 65_536_000, 597e-6),
    ("a100-80gb", 8, 34_471_936, 413e-6),
    ("a100-80gb", 8, 65_536_000, 662e-6),
]


def on(accelerator: str, *, tensor: int = 1, engine: str = "vllm") -> Deployment:
    """Llama 3.1 70B on that accelerator."""
    return deployed(LLAMA_31_70B, load_accelerator(accelerator), tensor=tensor, engine=engine)


def of(accelerator: str, engine: str = "vllm") -> Coefficients:
    """The coefficients of that accelerator."""
    return coefficients_for(on(accelerator, engine=engine)).coefficients


@pytest.mark.parametrize("engine", ["vllm", "sglang", "trtllm"])
@pytest.mark.parametrize(("accelerator", "ranks", "size", "seconds"), TIMED)
def test_large_messages_as_others_timed_them(
    accelerator: str, ranks: int, size: int, seconds: float, engine: str
) -> None:
    """Bandwidth-bound all-reduces are within 26% of timings on other machines (median 7%)."""
    assert of(accelerator, engine).all_reduce_s(ranks, size) == pytest.approx(seconds, rel=0.26)


@pytest.mark.parametrize("tensor", [2, 4, 8])
def test_two_a_layer_by_bytes(tensor: int) -> None:
    """A step's messages are two all-reduces a layer of tokens x hidden x 2 bytes."""
    where = on("h100-sxm", tensor=tensor)
    known = coefficients_for(where).coefficients

    for tokens in (1, 64, 4096):
        one = known.all_reduce_s(tensor, tokens * 8192 * 2)
        assert Messages(where, known).seconds(tokens) == pytest.approx(2 * 80 * one)
    assert Messages(on("h100-sxm"), known).seconds(64) == 0.0


@pytest.mark.parametrize("accelerator", ["h100-sxm", "a100-80gb", "l40s", "b200", "mi300x", "rtx-4090"])
@pytest.mark.parametrize("engine", ["vllm", "sglang", "trtllm"])
def test_never_less_for_more(accelerator: str, engine: str) -> None:
    """More bytes never take less time, nor do more ranks where bandwidth binds.

    Save that NVSwitch itself adds for 8 ranks (NVLS): measured up to 11% faster than 4.
    """
    known = of(accelerator, engine)
    for ranks in (2, 4, 8, 16):
        times = [known.all_reduce_s(ranks, 2.0**power) for power in range(8, 31)]
        assert all(later >= earlier * (1 - 1e-12) for earlier, later in pairwise(times))
    two, four, eight, sixteen, many = (known.all_reduce_s(ranks, 2.0**28) for ranks in (2, 4, 8, 16, 32))
    assert two < four
    assert 0.89 * four < eight < sixteen < many


def test_ranks_beyond_those_measured_grow_as_a_ring() -> None:
    """Each rank of a ring sends 2 (n - 1) / n of the message: 16 ranks take (15/16) / (7/8) of what 8 take."""
    known = of("h100-sxm")

    assert known.all_reduce_s(16, 2.0**28) == pytest.approx(known.all_reduce_s(8, 2.0**28) * (15 / 16) / (7 / 8))


def test_pcie_is_slower_than_nvlink() -> None:
    """A prefill's all-reduce of 64 MB over PCIe 4 takes over five times as long as over NVLink 4, as their rates do."""
    assert of("l40s").all_reduce_s(2, 2.0**26) > 5 * of("h100-sxm").all_reduce_s(2, 2.0**26)


def test_small_messages_cost_their_latency() -> None:
    """A decode step of one sequence pays some microseconds for each message: 16 KB take no less than 1 KB."""
    for accelerator in ("h100-sxm", "l40s"):
        small, larger = (of(accelerator).all_reduce_s(8, size) for size in (1024, 16 * 1024))
        assert 2e-6 < small <= larger < 50e-6


def test_the_ideal_engine_sends_nothing() -> None:
    """The ideal roofline is the floor of bytes and FLOPs on one rank: two ranks halve a step, without messages."""
    one, two = (deployed(LLAMA_31_8B, load_accelerator("h100-sxm"), engine="ideal", tensor=tensor) for tensor in (1, 2))
    shape = decode_shape(1, 1000)
    halved = estimator_for(one, "ideal").seconds(shape) / estimator_for(two, "ideal").seconds(shape)

    assert halved == pytest.approx(2.0, rel=1e-6)
    assert estimator_for(two, "ideal").step(shape).communication_s == 0.0


# NCCL on the bus (2 (n - 1) / n x bytes / time) of PCIe 5 cards that reach each other directly: RTX PRO 6000, eight,
# 37.6 to 41.7 GB/s tuned and 22.2 untuned on two sockets (https://github.com/voipmonitor/rtx6kpro at 070506ff,
# hardware/pcie-bandwidth.md); RTX 5090, four at 35 and eight at 28 (https://github.com/NVIDIA/nccl/issues/1639).
ON_THE_BUS = [("rtx-pro-6000", 8, 22.2e9, 41.7e9), ("rtx-5090", 4, 28e9, 41.7e9), ("rtx-5090", 8, 28e9, 41.7e9)]


@pytest.mark.parametrize("engine", ["sglang", "trtllm"])
@pytest.mark.parametrize(("accelerator", "ranks", "low", "high"), ON_THE_BUS)
def test_more_ranks_over_pcie_reach_what_others_timed(
    accelerator: str, ranks: int, low: float, high: float, engine: str
) -> None:
    """What an L40S machine lends of two ranks is a ring's of more, not that machine's 2 to 5 GB/s."""
    size = 2.0**28
    bus = 2 * (ranks - 1) / ranks * size / of(accelerator, engine).all_reduce_s(ranks, size)

    assert low <= bus <= high


@pytest.mark.parametrize(("size", "seconds"), [(1024, 24.1e-6), (65_536, 24.1e-6), (262_144, 28.0e-6)])
def test_small_messages_over_pcie(size: int, seconds: float) -> None:
    """NCCL over eight RTX PRO 6000 took 24 to 28 us for up to 256 KB (the same page): within a factor of two."""
    for engine in ("sglang", "trtllm"):
        assert seconds / 2 < of("rtx-pro-6000", engine).all_reduce_s(8, size) < 2 * seconds


def test_a_ring_by_hand() -> None:
    """8 MB in 1 ms beyond 10 us between two: four send 1.5 times the bytes each, eight 1.75, beyond their latency."""
    pair = AllReduce((Knot(1e3, 10e-6), Knot(8e6, 1.01e-3)))

    assert pair.ring(4, 30e-6).seconds(8e6) == pytest.approx(30e-6 + 1.5e-3)
    assert pair.ring(8, 50e-6).seconds(8e6) == pytest.approx(50e-6 + 1.75e-3)
    assert pair.ring(8, 50e-6).seconds(1e3) == pytest.approx(50e-6)


def test_a_machine_that_was_measured_keeps_its_own_times() -> None:
    """The L40S machine's 3 GB/s over four are its own; switched links lend all their degrees as measured."""
    size = 2.0**28
    assert size / of("l40s").all_reduce_s(4, size) < 4e9
    lent, lender = of("b200", "trtllm"), of("h200", "trtllm")
    for ranks in (4, 8):
        assert size / lent.all_reduce_s(ranks, size) > size / lender.all_reduce_s(ranks, size)


def test_cards_timed_through_the_host_stay_so_with_more_ranks() -> None:
    """Two RTX PRO 6000 under vLLM were timed at 16 GB/s through the host's memory; four and eight share that bus."""
    known, size = of("rtx-pro-6000-server"), 2.0**28
    for ranks in (2, 4, 8):
        assert 2 * (ranks - 1) / ranks * size / known.all_reduce_s(ranks, size) == pytest.approx(16e9, rel=0.02)
