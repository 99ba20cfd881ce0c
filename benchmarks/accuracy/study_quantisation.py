"""How far do the study's quantisation figures depend on the tiny model, which it does not describe?

Question: the study gives KL and top-1 agreement of "the tiny model" by bits, and neither its sizes, its weights nor its
text. Which of its properties move the figures, and what holds for every model?

Method: tiny models of other depths, widths and vocabularies, and of other sharpness (deviation of attention scores, of
logits, share of the head that follows the token before); for each the ratio of KL and of the odds of a changed token
to the study's, smallest and largest over the five widths.

Run: python -m benchmarks.accuracy.study_quantisation (one minute)
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np

from benchmarks.record import save, table
from servewise.study import sensitivity
from servewise.study.published import QUANTISATION
from servewise.study.sensitivity import BITS, TARGETS, Shifts, mean
from servewise.study.transformer import KvCache, TransformerConfig, forward, random_transformer, softmax

OURS = TransformerConfig()
CONFIGS = {
    "as in the study room": OURS,
    "plain random initialisation": replace(OURS, score_deviation=1.0, logit_deviation=1.0, bigram=0.0),
    "uniform attention": replace(OURS, score_deviation=1.0),
    "flat predictions": replace(OURS, logit_deviation=1.0),
    "head without bigrams": replace(OURS, bigram=0.0),
    "1 layer": replace(OURS, layers=1),
    "4 layers": replace(OURS, layers=4),
    "hidden 32": replace(OURS, hidden=32, feed_forward=128),
    "hidden 128": replace(OURS, hidden=128, feed_forward=512),
    "vocabulary 256": replace(OURS, vocab=256),
    "RoPE": replace(OURS, positions="rope"),
    "2 KV heads": replace(OURS, kv_heads=2),
}


def ratios(shifts: Shifts, target: str) -> tuple[list[float], list[float]]:
    """Ours over the study's by bits: KL, and odds of a changed token."""
    kls, odds = [], []
    for bits in BITS:
        kl, agreement = map(float, QUANTISATION[target][bits])
        ours = mean(shifts[target, bits])
        kls.append(ours.kl / kl)
        changed = max(1 - ours.agreement, 1e-6)
        odds.append(changed / max(1 - changed, 1e-6) * agreement / (1 - agreement))
    return kls, odds


def ordered(shifts: Shifts) -> bool:
    """KL rises with every bit less and is smaller for the cache than for the weights."""
    kl = {key: mean(each).kl for key, each in shifts.items()}
    rises = all(kl[target, more] < kl[target, fewer] for target in TARGETS for more, fewer in pairwise(BITS))
    return rises and all(kl["KV cache", bits] < kl["weights", bits] for bits in BITS)


def entropy(config: TransformerConfig) -> float:
    """Mean entropy of a prediction [nats]."""
    text = np.random.default_rng(0).integers(0, config.vocab, sensitivity.TOKENS)
    p = softmax(forward(random_transformer(config, 0), text, KvCache.empty(config)))
    return float(np.mean(-np.sum(p * np.log(p), axis=-1)))


def main() -> None:
    """Print the table and keep it."""
    rows = []
    for name, config in CONFIGS.items():
        shifts = sensitivity.measure(config)
        spans = [_span(each) for target in TARGETS for each in ratios(shifts, target)]
        nats = f"{entropy(config):.2f} of {math.log(config.vocab):.2f}"
        rows.append((name, nats, *spans, "yes" if ordered(shifts) else "no"))
    header = ("model", "entropy", "weights KL", "odds", "cache KL", "odds", "order")
    print("ours over the study's, smallest to largest over 8, 6, 4, 3, 2 bits")
    table(header, rows)
    save("study_quantisation", {"header": list(header), "rows": [list(row) for row in rows]})


def _span(values: list[float]) -> str:
    return f"{min(values):.2g} to {max(values):.2g}"


if __name__ == "__main__":
    main()
