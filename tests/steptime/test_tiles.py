"""Decoding beside prompts in the prompts' kernel: by hand, against kernels that were timed, and never cheaper."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from tests.steptime.known import LLAMA_31_8B, deployed

from servewise.ask.deploying import deploy
from servewise.deployment.deployment import Deployment
from servewise.hardware.catalogue import catalogue, load_accelerator
from servewise.modelspec.load import load_model
from servewise.steptime.api import calibrated_roofline
from servewise.steptime.attention import attention_layers
from servewise.steptime.attention_time import AttentionTime
from servewise.steptime.flash_attention import ACCELERATORS, TILES, tiled_decode
from servewise.steptime.lookup import STAGED, coefficients_for
from servewise.steptime.shape import add_chunk, decode_shape
from servewise.steptime.tiles import Tiles

KERNELS = Path(__file__).parents[2] / "benchmarks" / "data" / "card_kernels" / "attention.csv"
SERVERS = {
    "rtx-4090": deploy("llama-3.1-8b", "rtx-4090"),
    "rtx-pro-6000-server": deploy("qwen3-32b", "rtx-pro-6000-server", tp=2),
}


def test_a_tile_by_hand() -> None:
    """Llama 3.1 8B: 2 sequences of 1,000 tokens fill 64 rows a head and run on to half a tile of keys."""
    layers = attention_layers(deployed(LLAMA_31_8B, load_accelerator("rtx-4090")))
    tiles = Tiles(TILES, layers, 1e14, lambda _: ())
    flops = 4 * 128 * 32 * 64 * (2000 + 2 * 64)
    blocks = 2 * 32 * (1 + 512 / 64)

    assert tiles.seconds(2, 2000, 0, 512) == pytest.approx(32 * (flops / 1e14 + blocks * 2.5e-9))


@pytest.mark.parametrize("card", sorted(SERVERS))
def test_decodes_beside_prompts_take_what_was_timed(card: str) -> None:
    """What decodes add to a prompt's kernel: median error under a quarter; kernels of their own would be off by half.

    Nothing of these rows was fitted. Left out: caches beyond 200,000 tokens, which leave the chip's L2.
    """
    where = SERVERS[card]
    tiles, own = _judged(where, card)

    assert sorted(tiles)[len(tiles) // 2] < 0.25
    assert sorted(own)[len(own) // 2] > 0.5


def _judged(where: Deployment, card: str) -> tuple[list[float], list[float]]:
    """Relative errors of the tiles, and of decoding in a kernel of its own."""
    with KERNELS.open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["accelerator"] == card]
    alone = {(r["chunk_tokens"], r["history_tokens"]): float(r["time_us"]) for r in rows if r["sequences"] == "0"}
    attention = AttentionTime(where, coefficients_for(where).coefficients)
    layers = where.model.layer_count
    found: tuple[list[float], list[float]] = ([], [])
    for row in rows:
        before = alone.get((row["chunk_tokens"], row["history_tokens"]))
        sequences, context = int(row["sequences"]), int(row["sequences"]) * int(row["context_tokens"])
        if before is None or not sequences or context > 200_000:
            continue
        added_s = (float(row["time_us"]) - before) / 1e6
        lines = max(b + each * context for b, each, _ in attention.lines(sequences)) / layers
        tiled = (
            attention.tiles.seconds(sequences, context, 0, int(row["chunk_tokens"])) / layers if attention.tiles else 0
        )
        found[0].append(abs(max(tiled, lines) / added_s - 1.0))
        found[1].append(abs(lines / added_s - 1.0))
    return found


def test_a_prompt_beside_makes_no_decode_cheaper() -> None:
    """A step with a chunk of one token takes at least as long as without it, whatever its batch and context."""
    clock = calibrated_roofline(SERVERS["rtx-4090"])
    for batch in (1, 8, 64, 256):
        for context in (16, 500, 4000):
            alone = decode_shape(batch, context)
            assert clock.seconds(add_chunk(alone, 0, 1)) >= clock.seconds(alone)


def test_only_flash_attention_2_tiles() -> None:
    """vLLM on compute capability 8 and 12; a Hopper packs heads, SGLang and TensorRT-LLM decode apart."""
    assert set(catalogue()) >= ACCELERATORS
    assert tiled_decode("a100-80gb", "vllm") is TILES
    for accelerator, engine in (("h100-sxm", "vllm"), ("b200", "vllm"), ("a100-80gb", "sglang"), ("l40s", "trtllm")):
        assert tiled_decode(accelerator, engine) is None


def test_latent_attention_does_not_share_the_prompts_kernel() -> None:
    """MLA decodes absorbed, on another kernel: what tiles would cost is nothing, its own lines count."""
    where = deployed(load_model("deepseek-v3"), load_accelerator("a100-80gb"), tensor=8)
    attention = AttentionTime(where, coefficients_for(where).coefficients)
    lines = max(b + each * 64_000 for b, each, _ in attention.lines(64))

    assert attention.tiles is not None
    assert attention.tiles.seconds(64, 64_000, 0, 2048) == pytest.approx(lines)


def test_a_card_takes_its_own_kernels() -> None:
    """An RTX 4090 under vLLM borrows nothing in bf16; under SGLang it takes its kin's."""
    own = coefficients_for(SERVERS["rtx-4090"])
    kin = coefficients_for(deploy("llama-3.1-8b", "rtx-4090", engine="sglang"))

    assert own.caveats == ()
    assert own.coefficients.title.startswith("rtx-4090")
    assert kin.coefficients.title.startswith("l40s")


def test_the_same_chip_stands_in_and_says_so() -> None:
    """The Workstation Edition takes the Server Edition's efficiencies with its own bandwidth."""
    found = coefficients_for(deploy("qwen3-32b", "rtx-pro-6000"))

    assert "rtx-pro-6000-server" in found.caveats[0].message


def test_messages_over_pcie_pass_through_the_host() -> None:
    """Two RTX PRO 6000: 16.8 MB took 1.05 ms (16 GB/s), told; more ranks scale the nearest card's."""
    found = coefficients_for(SERVERS["rtx-pro-6000-server"])

    assert STAGED in {each.code for each in found.caveats}
    assert found.coefficients.all_reduce_s(2, 16_777_216) == pytest.approx(1051.83e-6, rel=1e-3)
    assert found.coefficients.all_reduce_s(4, 16_777_216) > found.coefficients.all_reduce_s(2, 16_777_216)
    assert STAGED not in {each.code for each in coefficients_for(deploy("qwen3-32b", "rtx-pro-6000-server")).caveats}


def test_ranks_gather_logits() -> None:
    """128 rows of 151,936 logits in 16 bits: half of them cross, as in an all-reduce of 19.4 MB; one rank has all."""
    known = calibrated_roofline(SERVERS["rtx-pro-6000-server"])
    few, many = (known.step(decode_shape(128, 100)._replace(logit_rows=rows)).communication_s for rows in (0, 128))
    alone = calibrated_roofline(SERVERS["rtx-4090"]).step(decode_shape(128, 100)).communication_s

    assert many - few == pytest.approx(known.coefficients.all_reduce_s(2, 128 * 151_936))
    assert alone == 0.0


def test_expert_parallel_replicas_exchange_all_their_tokens() -> None:
    """Two replicas that share experts gather and scatter 2 x 100 tokens of 2,048 values a layer, 48 layers."""
    known = calibrated_roofline(deploy("qwen3-30b-a3b", "rtx-pro-6000-server", count=2, tp=1, ep=True))
    found = known.step(decode_shape(100, 100)._replace(logit_rows=0)).communication_s

    assert found == pytest.approx(48 * known.coefficients.all_reduce_s(2, 2 * 100 * 2048 * 2))
    assert STAGED in {each.code for each in known.caveats}
