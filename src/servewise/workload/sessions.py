"""Turns as they come: the next one a pause after the answer of the one before has ended.

A source of requests that answers back, as the simulator (``simulate.arrivals``) and the engine's replay take them.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush
from math import inf
from typing import NamedTuple

from servewise.workload.conversation import Conversation
from servewise.workload.request import Request


class _Turn(NamedTuple):
    """A turn that is due, in order of time and serial."""

    at_s: float
    serial: int
    place: int
    talk: Conversation


class SessionArrivals:
    """``conversations`` in order of opening; with ``users``, each of whom opens the next one when free.

    An open conversation begins at its ``start_s``; a user's first one after the pause before its first turn, the next
    so long after the last answer. Every turn that was taken must end (``ended``) for its conversation to go on.
    ``count`` turns come after ``settle_s`` (None: until the conversations have ended), those before it beside them:
    at the start all conversations are new, and their turns rarer and shorter than later.
    """

    def __init__(
        self,
        conversations: Iterable[Conversation],
        users: int | None = None,
        *,
        count: int | None = None,
        settle_s: float = 0.0,
    ) -> None:
        self.settle_s = settle_s
        self._coming = iter(conversations)
        self._users = users
        self._left = inf if count is None else count
        self._due: list[_Turn] = []
        self._under_way: dict[int, _Turn] = {}
        for _ in range(1 if users is None else users):
            self._open(0.0)

    @property
    def next_s(self) -> float:
        """When the next turn comes [s]; infinity: none is known to come."""
        return self._due[0].at_s if self._due and self._left > 0 else inf

    def take(self) -> Request:
        """The next turn, stamped with its time."""
        turn = heappop(self._due)
        if self._users is None and turn.place == 0:
            self._open(0.0)  # the next stranger: conversations are in order of opening
        self._left -= turn.at_s >= self.settle_s
        self._under_way[turn.serial] = turn
        return turn.talk.turn(turn.place, turn.at_s)

    def ended(self, serial: int, now_s: float) -> None:
        """The answer to turn ``serial`` has ended: its user will say the next thing, or open another conversation."""
        turn = self._under_way.pop(serial)
        place, talk = turn.place + 1, turn.talk
        if place < len(talk):
            heappush(self._due, _Turn(now_s + talk.pauses_s[place], serial + 1, place, talk))
        elif self._users is not None:
            self._open(now_s)

    def _open(self, free_s: float) -> None:
        talk = next(self._coming, None)
        if talk is not None:
            at_s = talk.start_s if self._users is None else free_s + talk.pauses_s[0]
            heappush(self._due, _Turn(at_s, talk.first_serial, 0, talk))
