"""The probabilities behind the words, so that a divergence measured over the wire has a known truth."""

from __future__ import annotations

from math import log

# Of the first candidate, the runner-up, and three more; what is left lies beyond the five that are ever shown.
SHOWN = (0.60, 0.20, 0.08, 0.05, 0.03)


def candidates(first: int, shown: int) -> tuple[tuple[int, float], ...]:
    """The ``shown`` likeliest words (at most five) and their log probabilities, likeliest first."""
    pair = first & ~1  # the first two trade places where a word is changed; the rest stays as it is
    words = (first, first ^ 1, pair ^ 2, pair ^ 3, pair ^ 4)
    return tuple((word, log(share)) for word, share in zip(words[:shown], SHOWN[:shown], strict=True))


def divergence(share: float) -> float:
    """Mean KL(reference || quantised) [nats per token] where a ``share`` of the words is changed.

    A changed word has its first two probabilities swapped: (p1 - p2) ln(p1 / p2) there, nothing elsewhere.

    >>> round(divergence(1.0), 4)
    0.4394
    """
    first, second = SHOWN[:2]
    return share * (first - second) * log(first / second)
