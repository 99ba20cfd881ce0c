"""How far two next-token distributions are apart, as far as the alternatives that were returned tell.

Servers return only the likeliest few of a vocabulary. Over the tokens that both returned, with all others as one, the
divergence is a lower bound of the whole one (data processing inequality: Cover and Thomas, Elements of Information
Theory, section 2.8). No upper bound of KL follows from such lists: an unlisted token may be as unlikely as it likes.
The total variation distance is bounded on both sides: what is unlisted can differ by all of its mass.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import log

ROUNDING = 1e-6  # what single-precision logprobs leave of a sum


@dataclass(frozen=True, slots=True)
class Divergence:
    """``kl_low``: KL(a || b) at the least [nats]. Total variation from ``tv_low`` to ``tv_high``, 0 to 1.

    ``unseen``: the mass that ``a`` gives to tokens that not both returned.
    """

    kl_low: float
    tv_low: float
    tv_high: float
    unseen: float


def divergence(a: Mapping[bytes, float], b: Mapping[bytes, float]) -> Divergence | None:
    """From the probabilities of the returned tokens; None where no token is in both lists.

    >>> found = divergence({b"x": 0.6, b"y": 0.2}, {b"x": 0.2, b"y": 0.6})
    >>> round(found.kl_low, 4), round(found.tv_low, 3), round(found.tv_high, 3)
    (0.4394, 0.4, 0.6)
    """
    both = [token for token in a if token in b]
    if not both:
        return None
    p, q = ([table[token] for token in both] for table in (a, b))
    p_rest, q_rest = (max(1.0 - sum(shares), 0.0) for shares in (p, q))
    listed = sum(x * log(x / max(y, ROUNDING)) for x, y in zip(p, q, strict=True) if x > 0)
    rest = p_rest * log(p_rest / max(q_rest, ROUNDING)) if p_rest > ROUNDING else 0.0
    apart = sum(abs(x - y) for x, y in zip(p, q, strict=True))
    return Divergence(
        kl_low=max(listed + rest, 0.0),
        tv_low=(apart + abs(p_rest - q_rest)) / 2,
        tv_high=min((apart + p_rest + q_rest) / 2, 1.0),
        unseen=p_rest,
    )
