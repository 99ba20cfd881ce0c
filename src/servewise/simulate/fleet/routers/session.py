"""Session sticky: what goes on from an earlier prompt goes where that one went."""

from __future__ import annotations

from collections.abc import Sequence

from servewise.batching.sequence import Sequence as Tokens
from servewise.simulate.fleet.routers.least_loaded import LeastLoaded
from servewise.simulate.fleet.routers.router import Choice


class SessionSticky:
    """A session is known by its prompts: the next begins with all the whole blocks of the one before.

    That is what a cookie or a session header does for conversations (nginx ``sticky``, llm-d's session-affinity scorer,
    pkg/epp/framework/plugins/scheduling/scorer/sessionaffinity), where every turn repeats the turns before. A turn is
    gone on from once: a second prompt that begins alike (a branch, another's short question after the same system
    prompt) is a new session. New ones, and those whose replica is gone, go to the least loaded. Prompts without hashes
    are sessions of their own. ``hash_block_tokens`` tells which of a prompt's hashes are of whole blocks; None: all.
    """

    name = "session-sticky"

    def __init__(self, hash_block_tokens: int | None = None) -> None:
        self._block_tokens = hash_block_tokens
        self._home: dict[int, int] = {}  # hash of the last whole block of a session's last prompt -> replica
        self._fresh = LeastLoaded()

    def choose(self, request: Tokens, up: Sequence[Choice]) -> int:
        """Where its session is at home."""
        hashes = request.block_hashes
        if self._block_tokens:
            hashes = hashes[: request.prompt_tokens // self._block_tokens]
        number = self._taken_home(hashes)
        place = next((place for place, each in enumerate(up) if each.number == number), None)
        if place is None:
            place = self._fresh.choose(request, up)
        if hashes:
            self._home[hashes[-1]] = up[place].number
        return place

    def _taken_home(self, hashes: tuple[int, ...]) -> int | None:
        """The replica of the session that a prompt of these blocks goes on with, which is known by them from now on."""
        for each in reversed(hashes):
            number = self._home.pop(each, None)
            if number is not None:
                return number
        return None

    def gone(self, number: int) -> None:
        """Its sessions will find another home when they next come."""
