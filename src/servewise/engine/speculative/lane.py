"""A sequence that is decoded, and what a draft proposes for it. Legend: K drafted tokens, V vocabulary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
from torch import Tensor

from servewise.engine.sampling.penalties import History
from servewise.engine.sampling_settings import SamplingSettings
from servewise.engine.speculative.acceptance import AcceptanceCounts


@dataclass(slots=True)
class Lane:
    """One sequence: its ``tokens`` (prompt, then output) so far, and its own random stream.

    ``most_tokens``: where it ends at the latest, by its settings or the model's context. The last token is not in any
    cache yet: each round computes it first.
    """

    serial: int
    tokens: list[int]
    prompt_tokens: int
    most_tokens: int
    settings: SamplingSettings
    seed: int
    rng: np.random.Generator
    counts: AcceptanceCounts = field(default_factory=AcceptanceCounts)
    error: str | None = None

    @property
    def remaining(self) -> int:
        """Output tokens that may still come."""
        return self.most_tokens - len(self.tokens)

    def histories(self, drafted: Sequence[int]) -> list[History]:
        """What stands before each row of a verification: the tokens, then one drafted token more a row."""
        return [History([*self.tokens, *drafted[:place]], self.prompt_tokens) for place in range(len(drafted) + 1)]


class Proposal(NamedTuple):
    """Drafted tokens. ``probabilities_KV``: what each was drawn from; None: each was certain (greedy, or looked up)."""

    tokens: tuple[int, ...] = ()
    probabilities_KV: Tensor | None = None


class Draft(Protocol):
    """Where drafted tokens come from."""

    @property
    def name(self) -> str:
        """As it is asked for: ``ngram``, ``self:4``, ``exit:8``, or a model's name."""
        ...

    def admit(self, lanes: Sequence[Lane]) -> bool:
        """Take in new lanes, their prompts computed; False: there is no room for them."""
        ...

    def propose(self, lanes: Sequence[Lane], lengths: Sequence[int]) -> list[Proposal]:
        """At most ``lengths[i]`` tokens that may follow lane i's; fewer, or none, where it knows none."""
        ...

    def release(self, lane: Lane) -> None:
        """A lane has ended."""
        ...
