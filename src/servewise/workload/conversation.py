"""One conversation, drawn: what is said and answered in each turn, after which pauses, and the names of its blocks."""

from __future__ import annotations

from dataclasses import dataclass, replace

from servewise.workload.request import Request


@dataclass(frozen=True, slots=True)
class Conversation:
    """One conversation, all drawn. Turn k has the serial ``first_serial`` + k.

    ``start_s`` is when it opens (0 where a user opens it when free), ``pauses_s`` what comes before each turn: before
    the first, after the user's conversation before. ``shared`` are the blocks of its system prompt, ``first_block``
    the number of the first block of its own. ``outgrown``: it would have gone on, but for the longest context.
    """

    first_serial: int
    start_s: float
    prompts: list[int]
    outputs: list[int]
    pauses_s: list[float]
    shared: tuple[int, ...]
    first_block: int
    block_tokens: int
    outgrown: bool = False

    def __len__(self) -> int:
        """Turns."""
        return len(self.prompts)

    def turn(self, place: int, at_s: float) -> Request:
        """The request of turn ``place`` from 0 on, sent at ``at_s``; its hashes go on through its answer."""
        prompt, output = self.prompts[place], self.outputs[place]
        blocks = (prompt + output) // self.block_tokens
        own = range(self.first_block, self.first_block + blocks - len(self.shared))
        hashes = (*self.shared[:blocks], *own)
        return Request(self.first_serial + place, at_s, prompt, output, hashes, answer_hashed=True)

    def first(self, turns: int) -> Conversation:
        """Its first ``turns`` turns."""
        if turns >= len(self):
            return self
        return replace(self, prompts=self.prompts[:turns], outputs=self.outputs[:turns], pauses_s=self.pauses_s[:turns])
