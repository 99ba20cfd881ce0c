"""Each case beside the shipped estimator's prediction."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from statistics import fmean

from benchmarks.accuracy.measured_perf.cases import Case, case
from benchmarks.accuracy.measured_perf.data import rows
from servewise.steptime.api import calibrated_roofline
from servewise.steptime.ideal import ideal_roofline
from servewise.steptime.shape import StepShape, add_chunk, decode_shape, prefill_shape

# llama.cpp: a prompt goes in batches of n_batch tokens, each batch through the stages in pieces of n_ubatch.
BATCH, PIECE = 2048, 512


@dataclass(frozen=True)
class Judged:
    """A case with its prediction and the floor of it [s]."""

    case: Case
    predicted_s: float
    floor_s: float

    @property
    def ratio(self) -> float:
        """Measured / predicted."""
        return self.case.seconds / self.predicted_s

    @property
    def error(self) -> float:
        """Of the predicted time, without a sign."""
        return abs(self.predicted_s / self.case.seconds - 1.0)


def judged() -> tuple[list[Judged], Counter[str]]:
    """Every case with its prediction, and how many figures were left out for which reason."""
    found, reasons = [], Counter[str]()
    for row in rows():
        each = case(row)
        if isinstance(each, str):
            reasons[each] += 1
        else:
            found.append(judge(each))
    return found, reasons


def judge(each: Case) -> Judged:
    """The case with the shipped estimator's prediction."""
    predict = {"decode": _decode, "prefill": _prefill, "whole batch": _whole}[each.phase]
    return Judged(each, predict(each), _floor(each))


def _decode(each: Case) -> float:
    found = calibrated_roofline(each.where)
    return found.seconds(decode_shape(each.batch, max(1, each.prompt_tokens), found.window_tokens))


def _prefill(each: Case) -> float:
    found = calibrated_roofline(each.where)
    stages = each.where.parallelism.pipeline
    if each.engine != "llama.cpp":
        return found.seconds(prefill_shape(each.batch, each.prompt_tokens, found.window_tokens))
    times = [found.seconds(shape) for shape in _pieces(each.prompt_tokens, found.window_tokens)]
    group = BATCH // PIECE
    batches = [times[start : start + group] for start in range(0, len(times), group)]
    return sum(sum(one) * (len(one) + stages - 1) / (len(one) * stages) for one in batches)


def _pieces(tokens: int, window: int | None) -> list[StepShape]:
    starts = range(0, tokens, PIECE)
    return [
        add_chunk(StepShape(), start, min(PIECE, tokens - start), window, ends_prompt=start + PIECE >= tokens)
        for start in starts
    ]


def _whole(each: Case) -> float:
    """Prompts, then every step; the mean of a few steps stands for all (time is nearly linear in the context)."""
    found, middle = calibrated_roofline(each.where), each.output_tokens
    contexts = [each.prompt_tokens + round(middle * share) for share in (0.1, 0.3, 0.5, 0.7, 0.9)]
    steps = fmean(found.seconds(decode_shape(each.batch, one, found.window_tokens)) for one in contexts)
    return found.seconds(prefill_shape(each.batch, each.prompt_tokens, found.window_tokens)) + middle * steps


def _floor(each: Case) -> float:
    if each.phase == "whole batch":
        return 0.0
    ideal = ideal_roofline(each.where)
    make = decode_shape if each.phase == "decode" else prefill_shape
    return ideal.seconds(make(each.batch, max(1, each.prompt_tokens), ideal.window_tokens))


def fitted(each: Case) -> bool:
    """Whether a coefficient was read from this figure.

    The host's time of a layer: Splitwise's Llama 2 70B on eight A100, one sequence. The shares of their peak that an
    RTX 3090 and 4090 reach: llama.cpp's prompts of 512 tokens in F16 on one card.
    """
    row = each.row
    host = row.source == "splitwise" and row.model == "llama2-70b" and row.accelerators == 8
    if host and each.phase == "decode" and each.batch == 1:
        return True
    share = row.hardware in ("3090 24GB", "4090 24GB") and row.weights == "F16" and row.accelerators == 1
    return share and each.phase == "prefill" and each.prompt_tokens == PIECE
