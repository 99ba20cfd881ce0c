"""The kernels inside a server: each term by hand, its floor, and whose overheads a deployment takes."""

from __future__ import annotations

import pytest
from tests.steptime.known import LLAMA_31_8B, deployed

from servewise.hardware.catalogue import load_accelerator
from servewise.steptime.api import calibrated_roofline, estimator_for
from servewise.steptime.calibrated import CalibratedRoofline
from servewise.steptime.lookup import coefficients_for
from servewise.steptime.served import ServedRoofline
from servewise.steptime.served_lookup import nearest, shipped_overheads
from servewise.steptime.server_overheads import ServerOverheads, with_launches
from servewise.steptime.shape import add_chunk, decode_shape, prefill_shape

WHERE = deployed(LLAMA_31_8B, device=load_accelerator("h100-sxm"))
KERNELS = calibrated_roofline(WHERE)
LAYERS = 32


def served(**overheads: float) -> ServedRoofline:
    """Llama-3.1-8B on an H100 with those overheads."""
    return ServedRoofline(KERNELS, ServerOverheads(**overheads), name="by hand")


def test_no_overheads_are_the_kernels_alone() -> None:
    """With nothing added a step is the calibrated roofline's, decode, prompt and both."""
    mixed = add_chunk(decode_shape(8, 2000), 0, 512)

    for shape in (decode_shape(8, 2000), prefill_shape(2, 1024), mixed):
        assert served().seconds(shape) == KERNELS.seconds(shape)


def test_overheads_add() -> None:
    """1 ms a step and 50 µs for each of 8 sequences are 1.4 ms more than the kernels."""
    shape = decode_shape(8, 2000)
    found = served(step_s=1e-3, sequence_s=50e-6).seconds(shape)

    assert found - KERNELS.seconds(shape) == pytest.approx(1.4e-3, rel=1e-9)


def test_prompts_are_launched_layer_by_layer() -> None:
    """At 2 ms a layer the smallest prompt takes 64 ms, and decode, replayed from a graph, does not."""
    server = served(prompt_layer_s=2e-3)

    assert server.seconds(prefill_shape(1, 16)) == pytest.approx(LAYERS * 2e-3)
    assert server.seconds(decode_shape(1, 16)) == KERNELS.seconds(decode_shape(1, 16))


def test_prompts_slow_the_kernels_beside_them() -> None:
    """A step with prompts takes its kernels' time twice at a slowness of 2."""
    shape = add_chunk(decode_shape(8, 2000), 0, 4096)

    assert served(prompt_slowness=2.0).seconds(shape) == pytest.approx(2 * KERNELS.seconds(shape))


def test_half_the_launches() -> None:
    """Launches twice as fast save half of what lies above the bytes, at one sequence and one token of context."""
    known = coefficients_for(WHERE).coefficients
    at = [
        CalibratedRoofline(WHERE, with_launches(known, scale)).seconds(decode_shape(1, 1)) for scale in (1.0, 0.75, 0.5)
    ]

    assert at[0] - at[1] == pytest.approx(at[1] - at[2], rel=1e-6)
    assert at[2] > KERNELS.floor.seconds(decode_shape(1, 1))


def test_decode_is_the_largest_line() -> None:
    """A decode step is the largest of its lines."""
    server = served(step_s=1e-3, sequence_s=1e-5)
    for batch, context in ((1, 100), (64, 4000), (256, 20)):
        lines = server.decode_lines(batch)
        largest = max(line.base_s + line.per_context_token_s * batch * context for line in lines)

        assert server.seconds(decode_shape(batch, context)) == pytest.approx(largest, rel=1e-12)


def test_the_bracket_keeps_the_floor() -> None:
    """The fast clock never beats bytes and FLOPs, the slow one is slower; no spread, no bracket."""
    server = ServedRoofline(KERNELS, ServerOverheads(step_s=1e-3), name="wide", spread=1.0)
    bracket = server.bracket()
    assert bracket is not None
    slow, fast = bracket
    for shape in (decode_shape(64, 4000), prefill_shape(4, 4096)):
        assert fast.seconds(shape) >= KERNELS.floor.seconds(shape)
        assert fast.seconds(shape) <= server.seconds(shape) <= slow.seconds(shape)
    lines = fast.decode_lines(64)
    largest = max(line.base_s + line.per_context_token_s * 64 * 4000 for line in lines)

    assert fast.seconds(decode_shape(64, 4000)) == pytest.approx(largest, rel=1e-12)
    assert served().bracket() is None


def test_a_measured_server_is_not_borrowed() -> None:
    """H100 with vLLM was measured; L40S with SGLang was not, and its estimator says whose overheads it takes."""
    own = estimator_for(deployed(LLAMA_31_8B, device=load_accelerator("h100-sxm"), engine="vllm"), "served")
    other = estimator_for(deployed(LLAMA_31_8B, device=load_accelerator("l40s"), engine="sglang"), "served")

    assert own.name == "served (h100-sxm, vllm)"
    assert not any("no server" in each.message for each in own.caveats)
    assert any("no server of sglang on l40s" in each.message for each in other.caveats)


def test_kin_before_strangers() -> None:
    """An H100 PCIe takes the overheads of its kin H100 SXM with TensorRT-LLM, not those of the B200."""
    entry, caveats = nearest(load_accelerator("h100-pcie"), "trtllm", shipped_overheads())

    assert (entry.accelerator, entry.engine) == ("h100-sxm", "trtllm")
    assert caveats
