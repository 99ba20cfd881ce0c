"""Session sticky: what goes on from an earlier prompt goes where that one went."""

from __future__ import annotations

from collections.abc import Sequence

from servewise.batching.sequence import Sequence as Tokens
from servewise.simulate.fleet.routers.least_loaded import LeastLoaded
from servewise.simulate.fleet.routers.router import Choice


class SessionSticky:
    """A session is known by its prompts: the next begins with all the whole blocks of one before.

    That is what a cookie or a session header does for conversations (nginx ``sticky``, llm-d's session-affinity scorer,
    pkg/epp/framework/plugins/scheduling/scorer/sessionaffinity), where every turn repeats the turns before. A new
    session, and one whose replica is gone, goes to the least loaded. Prompts without hashes are sessions of their own.
    """

    name = "session-sticky"

    def __init__(self) -> None:
        self._home: dict[int, int] = {}  # hash of a prompt's last whole block -> replica
        self._fresh = LeastLoaded()

    def choose(self, request: Tokens, up: Sequence[Choice]) -> int:
        """Where its session is at home."""
        home = self._home
        for each in reversed(request.block_hashes):
            number = home.get(each)
            if number is not None:
                place = next((place for place, one in enumerate(up) if one.number == number), None)
                break
        else:
            place = None
        if place is None:
            place = self._fresh.choose(request, up)
        if request.block_hashes:
            home[request.block_hashes[-1]] = up[place].number
        return place

    def gone(self, number: int) -> None:
        """Its sessions will find another home when they next come."""
