"""Measured speed: the same prompts decoded at one draft length, and the rate while the whole batch ran."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, stdev
from typing import Any
from zlib import crc32

import numpy as np

from servewise.engine.speculative.decoder import Request, SpeculativeDecoder, generate
from servewise.metrics.student import t_quantile
from servewise.probe.speculate.undisturbed import undisturbed

Interval = tuple[float, float]


def measure_speed(decoder: SpeculativeDecoder, requests: Sequence[Request], slots: int) -> dict[str, Any]:
    """Tokens a round, seconds a round and the output's checksums, over the rounds in which all ``slots`` ran.

    Tokens are counted over all of them, seconds over those that other programs did not hold up. Prompts, and rounds of
    a batch that has begun to empty, are left out.
    """
    lanes = generate(decoder, requests, slots)
    full = [each for each in decoder.rounds if not each.prompt_tokens and each.lanes == slots]
    kept = undisturbed([each.seconds for each in full], [each.waited_s for each in full]) if full else []
    return {
        "rounds": len(full),
        "undisturbed_rounds": len(kept),
        "tokens_per_round": fmean(each.emitted for each in full) if full else 0.0,
        "round_s": fmean(full[place].seconds for place in kept) if kept else 0.0,
        "outputs": [crc32(str(lane.tokens).encode()) for lane in lanes],
    }


def rate(part: dict[str, Any]) -> float:
    """Tokens/s of the batch."""
    return float(part["tokens_per_round"] / part["round_s"]) if part["round_s"] else math.nan


def tokens_per_verification(parts: Sequence[dict[str, Any]], lanes: int) -> float:
    """Tokens that a verification of one sequence gave, over all repeats."""
    rounds = sum(part["rounds"] for part in parts)
    tokens = sum(part["rounds"] * part["tokens_per_round"] for part in parts)
    return float(tokens / rounds / lanes) if rounds else math.nan


def identical_share(parts: Sequence[dict[str, Any]], plain: Sequence[dict[str, Any]]) -> float:
    """The share of outputs that are plain decoding's, token for token."""
    same = [
        a == b
        for part, base in zip(parts, plain, strict=True)
        for a, b in zip(part["outputs"], base["outputs"], strict=True)
    ]
    return float(np.mean(same))


def paired_speedup(parts: Sequence[dict[str, Any]], plain: Sequence[dict[str, Any]]) -> tuple[float, Interval | None]:
    """The geometric mean over repeats of the rate over plain decoding's in the same one; Student's 95% interval."""
    logs = [math.log(rate(part) / rate(base)) for part, base in zip(parts, plain, strict=True)]
    middle = fmean(logs)
    if len(logs) < 2:
        return math.exp(middle), None
    reach = t_quantile(0.975, len(logs) - 1) * stdev(logs) / math.sqrt(len(logs))
    return math.exp(middle), (math.exp(middle - reach), math.exp(middle + reach))
