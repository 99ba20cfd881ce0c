"""Conversations: each turn's prompt is all that was said before, the answers included, and what the user says next.

So a prompt's beginning is the whole turn before it, and its blocks are in a prefix cache that kept them. Blocks are
numbered by what they hold: those of a shared system prompt by its group, all others by the conversation and their
place in it. Left out: text that does not come back as the same tokens (a template that drops the reasoning, another
cut of the answer's text), branches and edits; all of them hit less.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain, repeat
from math import inf

import numpy as np

from servewise.errors import InputError
from servewise.workload import checks
from servewise.workload.arrivals import Arrivals
from servewise.workload.conversation import Conversation
from servewise.workload.lengths import Lengths
from servewise.workload.prefix import SharedPrefix
from servewise.workload.request import Request
from servewise.workload.sessions import SessionArrivals
from servewise.workload.streams import stream
from servewise.workload.thinking import NO_THINKING, Thinking

CHUNK = 1024  # conversations drawn at a time
MOST_TURNS = 1_000
MOST_CONTEXT = 1_000_000
BLOCK_TOKENS = 16
MOST_SETTLING = 10_000_000  # conversations before the first that counts: hours of simulation
SETTLING = 2  # mean lengths of a conversation; nearly all that were new at the start have ended by then
STREAMS = ("turns", "prompts", "outputs", "openings", "thinking", "prefixes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversations:
    """``count`` turns of conversations that ``arrivals`` open, or ``users`` one after another.

    ``turns`` of each conversation (at most 1,000), ``user_tokens`` of what a user says, ``output_tokens`` of an answer;
    ``opening_tokens``, if any, come on top of the first turn (a document), before it ``prefix`` (system prompts shared
    by groups). The next turn comes ``thinking`` after the end of the answer. A conversation ends before the turn whose
    prompt and answer would be over ``max_context_tokens``. Lengths, pauses and groups are streams of the seed: the same
    seed has the same conversations at every rate.

    A run (``session``) begins with new conversations only, whose first turns come alone: it settles for ``settle_s``
    (None: twice the mean pauses of a conversation in all) before its ``count`` turns are counted.
    """

    turns: Lengths
    user_tokens: Lengths
    output_tokens: Lengths
    count: int
    arrivals: Arrivals | None = None
    users: int | None = None
    opening_tokens: Lengths | None = None
    thinking: Thinking = NO_THINKING
    prefix: SharedPrefix | None = None
    max_context_tokens: int = MOST_CONTEXT
    settle_s: float | None = None
    name: str = ""

    def __post_init__(self) -> None:
        if (self.arrivals is None) == (self.users is None):
            raise InputError("conversations need either arrivals that open them, or a number of users")
        if self.users is not None:
            checks.tokens(self.users, "the number of users")
        checks.tokens(self.count, "the number of requests")
        if checks.tokens(self.max_context_tokens, "the longest context") > MOST_CONTEXT:
            raise InputError(f"a context of {self.max_context_tokens} tokens is over {MOST_CONTEXT:,}")
        if self.settle_s:
            checks.positive(self.settle_s, "the time to settle", most=checks.MAX_SECONDS, unit="seconds")

    @property
    def title(self) -> str:
        """E.g. ``conversations Poisson 0.5/s of 4 turns, 64 said, 128 answered, think 20 s``."""
        opened = f"of {self.users} users" if self.arrivals is None else str(self.arrivals)
        parts = [
            self.name,
            f"conversations {opened} of {self.turns} turns",
            f"{self.user_tokens} said",
            f"{self.output_tokens} answered",
            f"{self.opening_tokens} to open" if self.opening_tokens else "",
            str(self.thinking),
            str(self.prefix or ""),
        ]
        return ", ".join(filter(None, parts))

    @property
    def block_tokens(self) -> int:
        """Tokens per block of the hashes: those of the shared prefix, else 16."""
        return self.prefix.block_tokens if self.prefix else BLOCK_TOKENS

    @property
    def hash_block_tokens(self) -> int | None:
        """The same, as every workload says it."""
        return self.block_tokens

    @property
    def rate_per_s(self) -> float:
        """Mean rate of requests (turns), by the mean number of turns before any is cut [requests/s]."""
        return self._arrivals().rate_per_s * self.turns.mean

    def at_rate(self, rate_per_s: float) -> Conversations:
        """The same conversations, opened so often that their turns come at that mean rate."""
        opened = self._arrivals()
        return replace(self, arrivals=opened.at_rate(opened.rate_per_s * (rate_per_s / self.rate_per_s)))

    def within(self, context_tokens: int | None) -> Conversations:
        """The same conversations for a model of that context (None: without limit)."""
        if context_tokens is None or context_tokens >= self.max_context_tokens:
            return self
        return replace(self, max_context_tokens=context_tokens)

    def _arrivals(self) -> Arrivals:
        if self.arrivals is None:
            raise InputError("users who wait for their answers have no arrival rate", hint="change their number")
        return self.arrivals

    def session(self, seed: int) -> SessionArrivals:
        """The turns as they come to a server whose answers take their time."""
        pauses_s = max(self.turns.mean - (self.users is None), 0) * self.thinking.mean_s
        settle_s = SETTLING * pauses_s if self.settle_s is None else self.settle_s
        if self.arrivals is not None and self.arrivals.rate_per_s * settle_s > MOST_SETTLING:
            what = f"{self.arrivals.rate_per_s * settle_s:.2g} conversations open before the first one counts"
            raise InputError(what, where=self.title, hint="a lower rate, or a settle_s in the workload file")
        return SessionArrivals(self._endless(seed), self.users, count=self.count, settle_s=settle_s)

    def requests(self, seed: int) -> Iterator[Request]:
        """The turns of the first conversations in the order, and at the times, in which a server would see them that
        answers at once.
        """
        source = SessionArrivals(self.conversations(seed), self.users)
        while source.next_s < inf:
            turn = source.take()
            yield turn
            source.ended(turn.serial, turn.arrival_s)

    def conversations(self, seed: int) -> Iterator[Conversation]:
        """The first conversations, of ``count`` turns together (the last is cut), in the order in which they open."""
        left = self.count
        for talk in self._endless(seed):
            yield talk.first(left)
            left -= len(talk)
            if left <= 0:
                return

    def _endless(self, seed: int) -> Iterator[Conversation]:
        starts = self._starts(seed)
        rngs = {purpose: stream(seed, f"conversations {purpose}") for purpose in STREAMS}
        serial, block = 0, self.prefix.groups * len(self.prefix.hashes[0]) if self.prefix else 0
        while True:
            before = serial
            for drawn in self._chunk(rngs):
                start_s = next(starts)
                if drawn.prompts:
                    yield replace(drawn, first_serial=serial, start_s=start_s, first_block=block)
                    serial += len(drawn)
                    block += (drawn.prompts[-1] + drawn.outputs[-1]) // self.block_tokens
            if serial == before:
                what = f"no conversation's first turn keeps within {self.max_context_tokens} tokens"
                raise InputError(what, where=self.title, hint="a longer context, or shorter prompts")

    def _starts(self, seed: int) -> Iterator[float]:
        if self.arrivals is None:
            return repeat(0.0)
        return chain.from_iterable(times.tolist() for times in self.arrivals.times(stream(seed, "arrivals")))

    def _chunk(self, rngs: dict[str, np.random.Generator]) -> Iterator[Conversation]:
        """The next ``CHUNK`` conversations, as far as their lengths say."""
        turns = np.minimum(self.turns.draw(rngs["turns"], CHUNK), MOST_TURNS)
        ends = np.cumsum(turns)
        total = int(ends[-1])
        said, answered = self.user_tokens.draw(rngs["prompts"], total), self.output_tokens.draw(rngs["outputs"], total)
        firsts = ends - turns
        if self.opening_tokens is not None:
            said[firsts] += self.opening_tokens.draw(rngs["openings"], CHUNK)
        groups = self.prefix.draw(rngs["prefixes"], CHUNK) if self.prefix else np.zeros(CHUNK, np.int64)
        if self.prefix is not None:
            said[firsts] += np.where(groups < self.prefix.groups, self.prefix.tokens, 0)
        pauses = self.thinking.draw(rngs["thinking"], total)
        for first, end, group in zip(firsts.tolist(), ends.tolist(), groups.tolist(), strict=True):
            lengths = np.cumsum(said[first:end] + answered[first:end])  # prompt and answer of each turn
            fitting = int(np.searchsorted(lengths, self.max_context_tokens, "right"))
            outputs = answered[first : first + fitting]
            yield Conversation(
                first_serial=0,
                start_s=0.0,
                prompts=(lengths[:fitting] - outputs).tolist(),
                outputs=outputs.tolist(),
                pauses_s=pauses[first : first + fitting].tolist(),
                shared=self.prefix.hashes[group] if self.prefix else (),
                first_block=0,
                block_tokens=self.block_tokens,
                outgrown=fitting < end - first,
            )
