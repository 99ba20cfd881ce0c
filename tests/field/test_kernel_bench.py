"""Single kernels that others timed: products, attention, routed experts and messages within their bars."""

from __future__ import annotations

import json
from typing import Any

import pytest
from benchmarks.accuracy.kernel_bench.__main__ import result
from benchmarks.record import RESULTS


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    """The whole result."""
    return result()


# Kernels in no fit, as medians of the errors. The decode attention is another library's (FlashInfer).
BARS = {
    "product, fp16 | A100 | up to 256 rows": 0.10,
    "product, fp16 | H100 | up to 256 rows": 0.10,
    "product, fp16 | A40 | up to 256 rows": 0.10,
    "product, fp8 | all | all": 0.12,
    "attention, decode | all | all": 0.05,
    "attention, decode, multi-head | all | all": 0.05,
    "routed experts | h100-sxm | up to 64 tokens": 0.10,
    "routed experts | rtx-pro-6000 | up to 64 tokens": 0.12,
    "all-reduce of 2 | a100_dgx | above 8,388,608 bytes": 0.10,
    "all-reduce of 4 | h100_dgx | above 8,388,608 bytes": 0.12,
}


@pytest.mark.parametrize("name", BARS)
def test_kernels_take_what_others_timed(found: dict[str, Any], name: str) -> None:
    """Each kind of kernel is within its bar in the middle."""
    assert found["groups"][name]["median"] <= BARS[name]


def test_links_take_what_nccl_timed(found: dict[str, Any]) -> None:
    """Sends on an H100 node (fitted) and between two such nodes are within 12% in the middle."""
    for name in ("send, within a node | h100_dgx | above 8,388,608 bytes", "send, between nodes | all | all"):
        assert found["groups"][name]["median"] <= 0.12


def test_small_kernels_timed_alone_take_longer_than_in_a_step(found: dict[str, Any]) -> None:
    """Each operator timed by itself carries its own launch: no layer's sum is below half of ours."""
    assert found["groups"]["small kernels of a layer | all | all"]["measured_over_predicted"] > 1.0


def test_the_committed_table_is_what_the_command_prints(found: dict[str, Any]) -> None:
    """A change of predictions shows in benchmarks/results/kernel_bench.json: run the command again."""
    committed = json.loads((RESULTS / "kernel_bench.json").read_text("utf-8"))

    assert found["left_out"] == committed["left_out"]
    for name, each in found["groups"].items():
        assert each == pytest.approx(committed["groups"][name], rel=5e-3), name
