"""TensorRT-LLM's published throughput over one to eight pipeline stages: its limits, and what is simulated of it."""

from __future__ import annotations

import json

import pytest
from benchmarks.accuracy.pipeline_stages import Point, points, summary
from benchmarks.accuracy.trtllm_bench import counted_bytes, limits_of
from benchmarks.record import RESULTS

from servewise.ask.deploying import deploy

GIB = 2.0**30
RECORD = json.loads((RESULTS / "pipeline_stages.json").read_text("utf-8"))


@pytest.mark.parametrize(
    ("weights", "kv", "printed"),
    [
        # NVIDIA's blog on tuning with trtllm-bench (0.21): "Max Runtime Batch Size: 3840, Max Runtime Tokens: 7680"
        (None, None, (3840, 7680)),
        # a log of the command of 2025-01: "Estimated max batch size (after fine-tune): 4096 ... max num tokens 8192"
        ("fp8", "fp8", (4096, 8192)),
    ],
)
def test_the_limits_are_those_that_the_command_printed(
    weights: str | None, kv: str | None, printed: tuple[int, int]
) -> None:
    """Llama 3.1 8B on an H200, 128 tokens in and out, as the command itself printed them."""
    assert limits_of(deploy("llama-3.1-8b", "h200", weights=weights, kv=kv, engine="trtllm"), 128, 128) == printed


def test_the_memory_that_the_command_counts_is_what_it_printed() -> None:
    """The same log: "Estimated total available memory for KV cache: 132.37 GB" beside an 8B in fp8, within the card's
    own rounding; an FP4 checkpoint of 70B has 41 billion elements, as its page says."""
    small = deploy("llama-3.1-8b", "h200", weights="fp8", kv="fp8", engine="trtllm")
    large = deploy("llama-3.3-70b", "rtx-pro-6000-server", weights="nvfp4", kv="fp8", engine="trtllm")

    assert (small.accelerator.memory_bytes - counted_bytes(small)) / GIB == pytest.approx(132.37, rel=1e-3)
    assert round(counted_bytes(large) / 0.5 / 1e9) == 41


def test_stages_share_the_batch() -> None:
    """4,096 sequences at most, over the stages: 1,024 a batch of four, 512 of eight, and no fewer tokens than 2,048."""
    four, eight = (
        limits_of(deploy("llama-3.3-70b", "rtx-pro-6000-server", pp=pp, weights="nvfp4", kv="fp8"), 128, 128)
        for pp in (4, 8)
    )

    assert (four, eight) == ((1024, 2048), (512, 2048))


def quick() -> list[tuple[Point, dict[str, float]]]:
    """Points of each number of stages that take a third of a second each, beside their record."""
    return [
        (each, row)
        for each, row in zip(points(), RECORD["rows"], strict=True)
        if (each.prompt, each.output) == (5000, 500) and each.model == "llama-3.3-70b" and each.accelerator != "b200"
    ]


@pytest.mark.parametrize(("point", "row"), quick(), ids=[each.server for each, _ in quick()])
def test_the_record_is_what_is_simulated_today(point: Point, row: dict[str, float]) -> None:
    """A change of predictions shows: run python -m benchmarks.accuracy.pipeline_stages again, then the page."""
    assert row["tokens_per_s"] == point.tokens_per_s
    assert point.simulated("calibrated") == pytest.approx(row["calibrated"], rel=1e-6)


@pytest.mark.parametrize(
    ("wanted", "kind", "bar"),
    [
        (("h200 TP1 PP1", "h100-sxm TP2 PP1", "h200 TP8 PP1", "h100-sxm TP1 PP1"), "calibrated", 0.06),
        (("server TP1 PP1", "server TP1 PP2"), "calibrated", 0.1),
        (("server TP1 PP2", "server TP1 PP4", "server TP1 PP8"), "served", 0.1),
    ],
)
def test_what_is_told_of_servers_with_and_without_stages(wanted: tuple[str, ...], kind: str, bar: float) -> None:
    """The median error that the pages state: kernels measured on the card, kernels lent to it, stages with a host."""
    ratios = [
        row[kind] / row["tokens_per_s"]
        for each, row in zip(points(), RECORD["rows"], strict=True)
        if each.server.endswith(wanted)
    ]
    assert summary(ratios)["median"] <= bar
