"""Prompts of a wanted number of tokens, each text its own but for what is meant to be shared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

from servewise.errors import InputError
from servewise.measure.ask import Ask
from servewise.measure.exchange import Exchange
from servewise.measure.load.bodies import Form
from servewise.measure.load.prompt import Prompt, TokenIds, Units, Words
from servewise.measure.load.tokens_per_unit import TokensPerUnit, learnt
from servewise.workload.request import Request
from servewise.workload.streams import stream

MOST_TOKENS = 2**24
LEAST_OWN = 4  # units after a shared prefix, however short the rest is to be: no two prompts are the same
CACHED_BLOCKS = 4_096
CORRECTIONS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompts:
    """Makes the prompt of each request from its length and its shared blocks, the same for the same seed and salt.

    The length is that of the whole prompt as the server counts it: ``size`` says what its template adds and how many
    tokens a unit takes. Every text begins with words of its own (two agree in their first word once in 1,024), so no
    prefix cache hits but where blocks are shared: equal block hashes give equal text, and a shared chain of blocks the
    same beginning. Another ``salt`` gives other texts of the same lengths, which nothing on the server has seen;
    ``shared_salt`` keeps the shared blocks of another salt, so that they alone are known to the server.
    ``counted`` is a tokenizer, by which the last words are corrected until the length is exact.
    """

    seed: int
    salt: int = 0
    shared_salt: int | None = None
    material: Words | TokenIds = field(default_factory=Words)
    size: TokensPerUnit = field(default_factory=TokensPerUnit)
    counted: Callable[[str], int] | None = None

    def of(self, request: Request, block_tokens: int | None = None) -> Prompt:
        """The prompt of ``request``, whose hashes name blocks of ``block_tokens`` tokens."""
        if request.prompt_tokens > MOST_TOKENS:
            what = f"a prompt of {request.prompt_tokens:,} tokens is longer than any model reads"
            raise InputError(what, where="input-tokens", hint="give the lengths a cap")
        wanted = self.size.units(request.prompt_tokens)
        rng = stream(self.seed, "prompt text", self.salt, request.serial)
        tokens, hashes = request.prompt_tokens, request.block_hashes
        if not hashes:
            return Prompt(self._exact(self._drawn(rng, wanted), tokens, rng, 1), tokens)
        assert block_tokens is not None, "hashes need the tokens of their blocks"
        shared = self._shared(hashes, block_tokens)
        if len(hashes) * block_tokens >= tokens:
            return Prompt(self._exact(shared[:wanted], tokens, rng, 1), tokens, hashes[0])
        own = self._drawn(rng, max(wanted - len(shared), LEAST_OWN))
        least = len(shared) + LEAST_OWN
        return Prompt(self._exact(np.concatenate((shared, own)), tokens, rng, least), tokens, hashes[0])

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

    def _shared(self, hashes: Sequence[int], block_tokens: int) -> Units:
        """The units of a chain of blocks; a chained hash has one place, so its length is the same."""
        per_block = block_tokens / self.size.per_unit
        ends = [round(per_block * blocks) for blocks in range(len(hashes) + 1)]
        draw = self.seed, self.salt if self.shared_salt is None else self.shared_salt, self.material.size
        return np.concatenate([block(*draw, name, ends[at + 1] - ends[at]) for at, name in enumerate(hashes)])

    def _drawn(self, rng: np.random.Generator, count: int) -> Units:
        return rng.integers(0, self.material.size, count)

    def _exact(self, units: Units, tokens: int, rng: np.random.Generator, least: int) -> str | tuple[int, ...]:
        """The content of ``units``; where a tokenizer counts, words at the end are added or dropped to fit.

        ``least`` units stay.
        """
        if self.counted is None or isinstance(self.material, TokenIds):
            return self.material.joined(units)
        found = self.material.joined(units)
        for _ in range(CORRECTIONS):
            off = round(tokens - self.size.template) - self.counted(found)
            if off == 0 or (off < 0 and len(units) <= least):
                break
            units = units[: max(len(units) + off, least)] if off < 0 else np.append(units, self._drawn(rng, off))
            found = self.material.joined(units)
        return found


@lru_cache(CACHED_BLOCKS)
def block(seed: int, salt: int, size: int, name: int, count: int) -> Units:
    """The ``count`` units of the shared block ``name``."""
    return stream(seed, "shared text", salt, name).integers(0, size, count)
