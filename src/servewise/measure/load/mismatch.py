"""Whether prompts had the length that they were made to have, by the server's own count."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from servewise.caveats import Caveat
from servewise.measure.exchange import Exchange

TOLERATED = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptMismatch:
    """Tokens asked for and counted by the server's usage, over ``requests`` that say both.

    ``worst_tokens`` is the difference that is furthest from 0, with its sign (counted - asked).
    """

    requests: int
    asked_mean_tokens: float
    counted_mean_tokens: float
    worst_tokens: int

    @property
    def ratio(self) -> float:
        """Counted over asked."""
        return self.counted_mean_tokens / self.asked_mean_tokens

    @property
    def caveats(self) -> tuple[Caveat, ...]:
        """That prompts were longer or shorter than was asked, where it is over 1%."""
        if abs(self.ratio - 1) <= TOLERATED:
            return ()
        message = (
            f"prompts of {self.asked_mean_tokens:,.4g} tokens were asked for, the server counted "
            f"{self.counted_mean_tokens:,.4g} on average (worst {self.worst_tokens:+,})"
        )
        return (Caveat("prompt-lengths-differ", message, "calibrate the prompts, or give the model's tokenizer"),)


def prompt_mismatch(exchanges: Iterable[Exchange]) -> PromptMismatch | None:
    """Over those whose prompt was made to a length and counted by the server's usage; None where there is none."""
    pairs = [
        (each.ask.prompt_tokens, each.prompt_tokens)
        for each in exchanges
        if each.ask.prompt_tokens is not None and each.prompt_tokens is not None and each.counted_by == "usage"
    ]
    if not pairs:
        return None
    asked, counted = np.array(pairs, np.int64).T
    off = counted - asked
    return PromptMismatch(
        requests=len(pairs),
        asked_mean_tokens=float(asked.mean()),
        counted_mean_tokens=float(counted.mean()),
        worst_tokens=int(off[np.abs(off).argmax()]),
    )
