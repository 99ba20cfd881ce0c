"""Measured speed: the same prompts decoded at one draft length, and the rate with a full batch."""

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
    """Tokens a verification, seconds of a round with all ``slots`` busy, and the output's checksums.

    Tokens are those of whole replies. Seconds are of rounds with a full batch that other programs did not hold up; such
    rounds see more of the replies' beginnings than of their ends, so they are read off at the run's own mean number of
    drafted tokens (``seconds_at``). Prefill is left out.
    """
    lanes = generate(decoder, requests, slots)
    rounds = [each for each in decoder.rounds if not each.prompt_tokens]
    full = [each for each in rounds if each.lanes == slots]
    kept = [full[place] for place in undisturbed([r.seconds for r in full], [r.waited_s for r in full])] if full else []
    verifications = sum(each.lanes for each in rounds)
    offered = sum(each.offered for each in rounds) * slots / max(verifications, 1)
    return {
        "verifications": verifications,
        "tokens_per_verification": sum(each.emitted for each in rounds) / verifications if verifications else 0.0,
        "full_rounds": len(full),
        "undisturbed_rounds": len(kept),
        "round_s": seconds_at(offered, [(each.offered, each.seconds) for each in kept]) if kept else 0.0,
        "outputs": [crc32(str(lane.tokens).encode()) for lane in lanes],
    }


def seconds_at(offered: float, rounds: Sequence[tuple[int, float]]) -> float:
    """Seconds of a round with ``offered`` drafted tokens, by least squares over (drafted tokens, seconds).

    The mean where all rounds had as many, or where more tokens seem to take less time (noise).
    """
    middle, mean = fmean(tokens for tokens, _ in rounds), fmean(seconds for _, seconds in rounds)
    spread = sum((tokens - middle) ** 2 for tokens, _ in rounds)
    if spread == 0:
        return mean
    slope = sum((tokens - middle) * (seconds - mean) for tokens, seconds in rounds) / spread
    return mean + max(slope, 0.0) * (offered - middle)


def rate(part: dict[str, Any]) -> float:
    """Tokens/s of one sequence in a full batch."""
    return float(part["tokens_per_verification"] / part["round_s"]) if part["round_s"] else math.nan


def tokens_per_verification(parts: Sequence[dict[str, Any]]) -> float:
    """Tokens that a verification of one sequence gave, over all repeats."""
    verifications = sum(part["verifications"] for part in parts)
    tokens = sum(part["verifications"] * part["tokens_per_verification"] for part in parts)
    return float(tokens / verifications) if verifications else math.nan


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
