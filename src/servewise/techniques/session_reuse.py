"""How much of its history a conversation's next turn still finds: Che's approximation for conversations.

A cache of C tokens that evicts the least recently used has one characteristic time T [s]: what was used within T is
there, what was not is gone (Che, Tung, Wang, IEEE JSAC 2002). A turn leaves its prompt and answer, L tokens, which are
used again by the next turn after a pause D, or never (D infinite, the last turn). Turns come at the rate r [1/s], so
what was used within T adds up to r E[L min(T, D)], and a system prompt of S tokens that all share stays:

    C = S + r E[(L - S) min(T, D)]      hit rate = (S + E[(L - S); D < T]) / E[prompt]

Left out: what running requests hold, the time of answers, and chance (T varies from eviction to eviction): good where
many conversations share the cache and pauses are much longer than answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from servewise.errors import InputError
from servewise.workload.conversation import Conversation

Floats = NDArray[np.float64]
HALVINGS = 200


@dataclass(frozen=True, slots=True)
class SessionReuse:
    """``characteristic_s``: what was used longer ago is gone. ``hit_rate``: of tokens."""

    characteristic_s: float
    hit_rate: float


def session_reuse(talks: Iterable[Conversation], rate_per_s: float, pool_tokens: int) -> SessionReuse:
    """What the turns of conversations like ``talks`` find in a pool, at ``rate_per_s`` turns a second.

    Only whole blocks count, and an answer's last token is never in the cache.
    """
    if not (rate_per_s > 0 and pool_tokens > 0):
        raise InputError("needs a rate and a pool above 0", where="session reuse")
    left, pauses, shared, prompts = _columns(talks)
    room = pool_tokens - shared.max(initial=0.0)
    time_s = _time(lambda t: rate_per_s * float(np.mean(left * np.minimum(t, pauses))), room)
    found = float(np.sum(left[pauses < time_s]) + np.sum(shared))
    return SessionReuse(time_s, found / float(np.sum(prompts)))


def _columns(talks: Iterable[Conversation]) -> tuple[Floats, Floats, Floats, Floats]:
    """Of each turn: tokens that it leaves beside the shared ones, the pause to the next, shared and prompt tokens."""
    rows = []
    for talk in talks:
        size = talk.block_tokens
        shared = len(talk.shared) * size
        pauses = [*talk.pauses_s[1:], np.inf]
        for prompt, output, pause in zip(talk.prompts, talk.outputs, pauses, strict=True):
            rows.append(((prompt + output - 1) // size * size - shared, pause, shared, prompt))
    if not rows:
        raise InputError("has no turns", where="session reuse")
    left, pauses_s, shared_tokens, prompts = np.array(rows, np.float64).T
    return left, pauses_s, shared_tokens, prompts


def _time(used: Callable[[float], float], room: float) -> float:
    """The time within which ``used`` tokens fill ``room``; it rises with time, without bound."""
    high = 1.0
    while used(high) < room:
        high *= 2
    low = 0.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if used(middle) < room else (low, middle)
    return high
