"""How many tokens each sequence drafts in the next step: always the same, or none above a load."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from servewise.batching.speculative.acceptance import MOST_DRAFTED
from servewise.errors import InputError


class DraftLength(Protocol):
    """Chooses K. Asked whenever the decoding sequences change; it answers alike until they do."""

    def choose(self, sequences: int, context_tokens: int) -> int:
        """Tokens to draft for each of ``sequences`` with ``context_tokens`` KV tokens in all; 0: none."""
        ...

    def observe(self, drafted: int, by_count: Sequence[int]) -> None:
        """The step verified ``drafted`` tokens a sequence; ``by_count[i]`` sequences kept i of them."""
        ...


@dataclass(frozen=True, slots=True)
class FixedLength:
    """Always ``k``: vLLM's ``num_speculative_tokens``."""

    k: int

    def __post_init__(self) -> None:
        """Refuse a length below 0, or absurd."""
        _checked(self.k)

    def choose(self, sequences: int, context_tokens: int) -> int:  # noqa: ARG002 - the seam of all lengths
        """``k``."""
        return self.k

    def observe(self, drafted: int, by_count: Sequence[int]) -> None:
        """Nothing changes."""


@dataclass(frozen=True, slots=True)
class UntilBatch:
    """``k`` up to ``most`` sequences, none above.

    vLLM v0's ``speculative_disable_by_batch_size`` (vllm/engine/arg_utils.py, v0.6: speculation off for new requests
    where more than that are queued); here the decoding sequences are counted, and those under way switch too.
    """

    k: int
    most: int

    def __post_init__(self) -> None:
        """Refuse a length below 0, or a batch below 1."""
        _checked(self.k)
        if self.most < 1:
            raise InputError(f"must be 1 or more, not {self.most!r}", where="speculate-until-batch")

    def choose(self, sequences: int, context_tokens: int) -> int:  # noqa: ARG002
        """``k``, or 0."""
        return self.k if sequences <= self.most else 0

    def observe(self, drafted: int, by_count: Sequence[int]) -> None:
        """Nothing changes."""


def _checked(k: int) -> None:
    if not 0 <= k <= MOST_DRAFTED:
        raise InputError(f"a draft holds 0 to {MOST_DRAFTED} tokens, not {k!r}", where="draft-tokens")
