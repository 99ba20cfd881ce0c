"""Requests to come, small beside the pools they come to, some with a beginning in common."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from servewise.batching.sequence import Sequence

BLOCK, NAMED = 16, 32


@dataclass(frozen=True)
class Ask:
    """A request to come: the first ``own`` parts of its prompt are those of its ``family``."""

    prompt: int
    output: int
    family: int
    own: int
    priority: int
    stored: bool

    def sequence(self, serial: int) -> Sequence:
        """It, numbered."""
        parts = range(self.prompt // NAMED)
        names = tuple(1000 * self.family + at if at < self.own else 10_000 * (serial + 1) + at for at in parts)
        sequence = Sequence(serial, self.prompt, self.output, names)
        sequence.priority = self.priority
        return sequence


asks = st.builds(
    Ask,
    prompt=st.integers(1, 30) | st.integers(1, 150),
    output=st.integers(1, 60),
    family=st.integers(0, 2),
    own=st.integers(0, 5),
    priority=st.integers(0, 2),
    stored=st.sampled_from([False, False, False, True]),
)
