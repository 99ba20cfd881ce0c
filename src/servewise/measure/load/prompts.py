"""Prompts of a wanted number of tokens, each text its own but for what is meant to be shared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from servewise.measure.ask import Ask
from servewise.measure.exchange import Exchange
from servewise.measure.load.bodies import Form
from servewise.measure.load.prompt import Prompt, TokenIds, Words
from servewise.measure.load.tokens_per_unit import TokensPerUnit, learnt
from servewise.workload.request import Request
from servewise.workload.streams import stream

Units = NDArray[np.uint32]
LEAST_OWN = 4  # units after a shared prefix, however short the rest is to be: no two prompts are the same
CACHED_BLOCKS = 4_096
CORRECTIONS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompts:
    """Makes the prompt of each request from its length and its shared blocks, the same for the same seed and salt.

    The length is that of the whole prompt as the server counts it: ``size`` says what its template adds and how many
    tokens a unit takes. Every text begins with words of its own (two agree in their first word once in 1,024), so no
    prefix cache hits but where blocks are shared: equal block hashes give equal text, and a shared chain of blocks the
    same beginning. Another ``salt`` gives other texts of the same lengths, which nothing on the server has seen.
    ``counted`` is a tokenizer, by which the last words are corrected until the length is exact.
    """

    seed: int
    salt: int = 0
    material: Words | TokenIds = field(default_factory=Words)
    size: TokensPerUnit = field(default_factory=TokensPerUnit)
    counted: Callable[[str], int] | None = None

    def of(self, request: Request, block_tokens: int | None = None) -> Prompt:
        """The prompt of ``request``, whose hashes name blocks of ``block_tokens`` tokens."""
        wanted = self.size.units(request.prompt_tokens)
        rng = stream(self.seed, "prompt text", self.salt, request.serial)
        if not request.block_hashes:
            return Prompt(self._exact(self._drawn(rng, wanted), request.prompt_tokens, rng), request.prompt_tokens)
        assert block_tokens is not None, "hashes need the tokens of their blocks"
        units = self._shared(request.block_hashes, block_tokens)
        if len(request.block_hashes) * block_tokens >= request.prompt_tokens:
            units = units[:wanted]
        else:
            units += self._drawn(rng, max(wanted - len(units), LEAST_OWN))
        content = self._exact(units, request.prompt_tokens, rng)
        return Prompt(content, request.prompt_tokens, request.block_hashes[0])

    def text(self, tokens: int, purpose: str, *members: int) -> Prompt:
        """A prompt of its own for ``purpose`` (a turn, a probe), without the template's share of tokens."""
        rng = stream(self.seed, purpose, self.salt, *members)
        return Prompt(self.material.joined(self._drawn(rng, max(round(tokens / self.size.per_unit), 1))), tokens)

    def salted(self, salt: int) -> Prompts:
        """The same lengths with other texts."""
        return replace(self, salt=salt)

    def calibrated(self, send: Callable[[Ask], Exchange], form: Form) -> Prompts:
        """The prompts with the server's own count of what its template adds and of what a word takes.

        ``send`` sends a few short requests. Raises RunFailed where the server answers none of them.
        """
        return replace(self, size=learnt(self.material, self.seed, self.salt, send, form))

    def _shared(self, hashes: Sequence[int], block_tokens: int) -> list[int]:
        """The units of a chain of blocks; a chained hash has one place, so its length is the same."""
        per_block = block_tokens / self.size.per_unit
        ends = [round(per_block * blocks) for blocks in range(len(hashes) + 1)]
        draw = self.seed, self.salt, self.material.size
        blocks = [block(*draw, name, ends[at + 1] - ends[at]) for at, name in enumerate(hashes)]
        units: list[int] = np.concatenate(blocks).tolist()
        return units

    def _drawn(self, rng: np.random.Generator, count: int) -> list[int]:
        drawn: list[int] = rng.integers(0, self.material.size, count).tolist()
        return drawn

    def _exact(self, units: list[int], tokens: int, rng: np.random.Generator) -> str | tuple[int, ...]:
        """The content of ``units``; where a tokenizer counts, words at the end are added or dropped to fit."""
        if self.counted is None or isinstance(self.material, TokenIds):
            return self.material.joined(units)
        found = self.material.joined(units)
        for _ in range(CORRECTIONS):
            off = round(tokens - self.size.template) - self.counted(found)
            if off == 0 or (off < 0 and len(units) + off < 1):
                break
            units = units[:off] if off < 0 else units + self._drawn(rng, off)
            found = self.material.joined(units)
        return found


@lru_cache(CACHED_BLOCKS)
def block(seed: int, salt: int, size: int, name: int, count: int) -> Units:
    """The ``count`` units of the shared block ``name``."""
    return stream(seed, "shared text", salt, name).integers(0, size, count, np.uint32)
