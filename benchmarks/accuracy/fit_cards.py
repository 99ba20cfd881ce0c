"""Fit the step-time coefficients of single cards: python -m benchmarks.accuracy.fit_cards.

Writes src/servewise/steptime/card_coefficients.json from benchmarks/data/card_kernels: kernels of one model each, timed
in vLLM by their durations on the device. Takes a second.
"""

from __future__ import annotations

import csv
import math
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.accuracy.fit_step_times import text
from benchmarks.accuracy.kernel_fit import Array, as_array, solve
from servewise.ask.deploying import deploy
from servewise.deployment.deployment import Deployment
from servewise.modelspec.flops import pairs
from servewise.steptime.attention import AttentionLayer, attention_layers
from servewise.steptime.coefficients import AttentionCoefficients, DecodeAttention, GemmCoefficients
from servewise.steptime.gemms import Gemm, head_gemm, layer_gemms

DATA = Path(__file__).parents[1] / "data" / "card_kernels"
OUTPUT = Path(__file__).parents[2] / "src" / "servewise" / "steptime" / "card_coefficients.json"
COMMAND = "python -m benchmarks.accuracy.fit_cards"
SCHEMA = "servewise.card-coefficients/1"
PRODUCTS = ("qkv", "out", "gate_up", "down")  # in the order of ``layer_gemms``
SPREAD = {"decode": 0.05, "prefill": 0.05}  # of held-out models on the L40S: one model alone holds none out


@dataclass(frozen=True)
class Card:
    """One card: the engine, the model, the degree at which attention was timed, and cards with the same chip."""

    name: str
    version: str
    model: str
    tensor: int
    stands_for: tuple[str, ...] = ()

    def deployment(self, tensor: int) -> Deployment:
        """The model on ``tensor`` of these cards."""
        return deploy(self.model, self.name, tp=tensor, engine="vllm")


CARDS = (
    Card("rtx-4090", "0.19.0", "llama-3.1-8b", 1),
    Card("rtx-pro-6000-server", "0.28.0", "qwen3-32b", 2, ("rtx-pro-6000",)),
)
# Beyond the kernels of a layer that were timed: 12 gaps of 0.5 us between kernels of a CUDA graph (3.4 us from start to
# start of kernels of 2.9 us: https://developer.nvidia.com/blog/cuda-graphs, 2019-09) and the cache write, taken
# to last as long as the rotary embedding (2.4 us). Assumed, not fitted.
GAP_S = 12 * 0.5e-6 + 2.4e-6


class Product(NamedTuple):
    """One product at one number of tokens: its terms at the card's full rates, and what was timed [s]."""

    memory_s: float
    moved_s: float
    compute_s: float
    seconds: float


class Attended(NamedTuple):
    """One attention kernel: a chunk of a prompt after its history, decoding sequences of equal context, or both."""

    chunk: int
    history: int
    sequences: int
    context: int
    seconds: float


def rows(name: str, card: str) -> Iterator[Mapping[str, str]]:
    """The rows of that card."""
    with (DATA / f"{name}.csv").open(encoding="utf-8") as file:
        yield from (row for row in csv.DictReader(file) if row["accelerator"] == card)


def products(card: Card) -> list[list[Product]]:
    """What runs together: a layer's products at one degree and number of tokens, the head's product alone."""
    bandwidth, peak = _rates(card)
    found: dict[tuple[str, bool, int], list[Product]] = defaultdict(list)
    for row in rows("products", card.name):
        gemm, tokens = _gemms(card, int(row["tensor"]))[row["product"]], int(row["tokens"])
        moved, flops = gemm.activation_bytes_per_token * tokens, gemm.flops_per_token * tokens
        found[row["tensor"], row["product"] == "head", tokens].append(
            Product(gemm.weights.bytes / bandwidth, moved / bandwidth, flops / peak, float(row["time_us"]) / 1e6)
        )
    return list(found.values())


@cache
def _gemms(card: Card, tensor: int) -> Mapping[str, Gemm]:
    where = card.deployment(tensor)
    return dict(zip(PRODUCTS, layer_gemms(where), strict=True)) | {"head": head_gemm(where)}


def _rates(card: Card) -> tuple[float, float]:
    accelerator = card.deployment(1).accelerator
    return accelerator.bandwidth_bytes_per_s, accelerator.peak_flops("bf16")


def attended(card: Card) -> list[Attended]:
    """The attention kernels of one layer."""
    names = ("chunk_tokens", "history_tokens", "sequences", "context_tokens")
    return [
        Attended._make((*(int(row[name]) for name in names), float(row["time_us"]) / 1e6))
        for row in rows("attention", card.name)
    ]


def fit_products(card: Card) -> tuple[GemmCoefficients, dict[str, float]]:
    """Launch, efficiencies, sharpness and activations' share, with standard errors of their logarithms."""
    groups = products(card)

    def made(p: Array) -> GemmCoefficients:
        return GemmCoefficients(
            launch_s=math.exp(p[0]),
            weight_efficiency=math.exp(-p[1]),
            flop_efficiency=math.exp(-p[2]),
            sharpness=1.0 + math.exp(p[3]),
            activation_factor=math.exp(p[4]),
        )

    def residuals(p: Array) -> Array:
        known = made(p)
        return as_array([math.log(sum(known.seconds(*one[:3]) for one in each) / _timed(each)) for each in groups])

    x, errors = solve(
        residuals,
        [math.log(3e-6), 0.15, 0.2, 1.0, 0.7],
        [math.log(1e-7), 1e-3, 1e-3, -3.0, -3.0],
        [math.log(1e-4), 2.0, 2.0, 3.0, 3.0],
    )
    names = ("launch_s", "weight_efficiency", "flop_efficiency", "sharpness", "activation_factor")
    return made(x), {f"gemm.{name}": float(size) for name, size in zip(names, errors, strict=True)}


def _timed(group: Sequence[Product]) -> float:
    return sum(each.seconds for each in group)


def fit_attention(card: Card) -> tuple[AttentionCoefficients, dict[str, float]]:
    """Decode from steps without a prompt, prefill from those without decodes; what both share judges the tiles."""
    where = card.deployment(card.tensor)
    ((_, layer),) = attention_layers(where)
    kernels = attended(card)
    decode, errors = _fit_decode(where, layer, [each for each in kernels if not each.chunk])
    prompts = [each for each in kernels if not each.sequences]
    found, more = _fit_prefill(where, layer, decode, prompts)
    return found, errors | more


def _fit_decode(
    where: Deployment, layer: AttentionLayer, kernels: Sequence[Attended]
) -> tuple[DecodeAttention, dict[str, float]]:
    bandwidth = where.accelerator.bandwidth_bytes_per_s
    floor = np.array([layer.kv_bytes * each.sequences * each.context / bandwidth for each in kernels])
    wanted = np.array([each.seconds for each in kernels])

    def predict(p: Array) -> Array:
        return as_array(np.maximum(np.exp(p[0]), np.maximum(p[1] * 1e-6 + floor * np.exp(p[2]), floor)))

    x, errors = solve(
        lambda p: as_array(np.log(predict(p) / wanted)),
        [math.log(1.3e-5), 5.0, 0.2],
        [math.log(1e-6), -60.0, 1e-3],
        [math.log(1e-3), 200.0, 2.5],
    )
    value = DecodeAttention(launch_s=math.exp(x[0]), ramp_s=float(x[1]) * 1e-6, kv_efficiency=math.exp(-x[2]))
    return value, {"decode.launch_s": float(errors[0]), "decode.kv_efficiency": float(errors[2])}


def _fit_prefill(
    where: Deployment, layer: AttentionLayer, decode: DecodeAttention, kernels: Sequence[Attended]
) -> tuple[AttentionCoefficients, dict[str, float]]:
    bandwidth, peak = where.accelerator.bandwidth_bytes_per_s, where.accelerator.peak_flops("bf16")
    ends = [each.history + each.chunk for each in kernels]
    flops = np.array([layer.prefill.full * pairs(k.history, end) / peak for k, end in zip(kernels, ends, strict=True)])
    moved = np.array([layer.moved_bytes_per_token * each.chunk / bandwidth for each in kernels])
    kept = np.array([layer.kv_bytes * end / bandwidth / decode.kv_efficiency for end in ends])
    wanted = np.array([each.seconds for each in kernels])

    def predict(p: Array) -> Array:
        return as_array(np.exp(p[0]) + flops * np.exp(p[1]) + moved * np.exp(p[2]) + kept)

    x, errors = solve(
        lambda p: as_array(np.log(predict(p) / wanted)),
        [math.log(1e-5), 0.4, 0.5],
        [math.log(1e-6), 1e-3, -4.0],
        [math.log(1e-3), 3.0, 4.0],
    )
    names = ("prefill_launch_s", "flop_efficiency", "activation_factor")
    value = AttentionCoefficients(
        decode=decode,
        multi_head=decode,
        prefill_launch_s=math.exp(x[0]),
        flop_efficiency=math.exp(-x[1]),
        activation_factor=math.exp(x[2]),
    )
    return value, {f"prefill.{name}": float(size) for name, size in zip(names, errors, strict=True)}


def document() -> dict[str, Any]:
    """The file's content."""
    fitted = {card.name: (card, fit_products(card), fit_attention(card)) for card in CARDS}
    return {
        "schema": SCHEMA,
        "fit": {
            "command": COMMAND,
            "date": datetime.now(UTC).date().isoformat(),
            "data": "benchmarks/data/card_kernels",
            "source": "profiles of LLMServingSim, https://github.com/casys-kaist/LLMServingSim",
            "licence": "MIT",
        },
        "entries": [
            {
                "accelerator": card.name,
                "engine": "vllm",
                "version": card.version,
                "form": "bf16",
                "gemm": _rounded(asdict(gemm)),
                "attention": _rounded(asdict(attention)),
                "spread": SPREAD,
                "errors": _rounded(gemm_errors | attention_errors),
                "stands_for": list(card.stands_for),
                "layer_gap_s": _rounded(GAP_S),
            }
            for card, (gemm, gemm_errors), (attention, attention_errors) in fitted.values()
        ],
        "all_reduce": [_curve(card.name) for card in CARDS if list(rows("all_reduce", card.name))],
    }


def _curve(card: str) -> dict[str, Any]:
    """Messages that pass through the host's memory, as machines are set up unless somebody changes it."""
    staged = [row for row in rows("all_reduce", card) if row["path"] == "staged"]
    return {
        "accelerator": card,
        "engine": "vllm",
        "ranks": int(staged[0]["ranks"]),
        "bytes": [float(row["bytes"]) for row in staged],
        "seconds": [_rounded(float(row["time_us"]) / 1e6) for row in staged],
    }


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.5g}")
    return {name: _rounded(each) for name, each in value.items()} if isinstance(value, dict) else value


def main() -> None:
    """Fit, and write the file."""
    OUTPUT.write_text(text(document()), "utf-8")
    sys.stdout.write(f"{len(CARDS)} cards fitted, {OUTPUT.name} written\n")


if __name__ == "__main__":
    main()
