"""Shared prefixes: system prompts and documents that groups of requests begin with."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from servewise.errors import InputError
from servewise.workload import checks

MAX_BLOCKS = 2_000_000


@dataclass(frozen=True)
class SharedPrefix:
    """A ``share`` of the requests begin with one of ``groups`` prefixes of ``tokens`` tokens, each as likely.

    The drawn prompt length comes on top of the prefix. Only whole blocks of ``block_tokens`` are shared, as engines do.
    """

    groups: int
    tokens: int
    share: float = 1.0
    block_tokens: int = 16

    def __post_init__(self) -> None:
        checks.tokens(self.groups, "the number of prefix groups")
        checks.tokens(self.tokens, "the length of a shared prefix")
        checks.tokens(self.block_tokens, "the block of a shared prefix")
        checks.share(self.share, "the share of requests with a prefix")
        if self.groups * (self.tokens // self.block_tokens) > MAX_BLOCKS:
            raise InputError(f"{self.groups} prefixes of {self.tokens} tokens are over {MAX_BLOCKS:,} blocks")

    @cached_property
    def hashes(self) -> tuple[tuple[int, ...], ...]:
        """The chained block hashes of each group, and last the empty one of a request without a prefix."""
        blocks = self.tokens // self.block_tokens
        shared = tuple(tuple(range(group * blocks, (group + 1) * blocks)) for group in range(self.groups))
        return (*shared, ())

    @property
    def mean(self) -> float:
        """Mean tokens that prefixes add to a prompt."""
        return self.share * self.tokens

    def draw(self, rng: np.random.Generator, count: int) -> NDArray[np.int64]:
        """The group of each of ``count`` requests; ``groups`` itself stands for none."""
        group = rng.integers(0, self.groups, count)
        return np.where(rng.random(count) < self.share, group, self.groups)

    def __str__(self) -> str:
        """E.g. ``4 prefixes of 512 tokens in 80%``."""
        return f"{self.groups} prefix{'es' if self.groups > 1 else ''} of {self.tokens} tokens in {self.share:.0%}"
