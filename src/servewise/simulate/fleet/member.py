"""One replica of a fleet, from the moment it is ordered to the moment it is gone."""

from __future__ import annotations

from math import inf

from servewise.simulate.fleet.kind import ReplicaKind
from servewise.simulate.recorder import Recorder
from servewise.simulate.replica import Replica, Watch

STARTING, UP, DRAINING, DOWN, GONE = "starting", "up", "draining", "down", "gone"


class Member:
    """``number`` is the replica's in the records. ``state``: starting, up, draining, down (failed) or gone.

    ``in_flight`` are the requests that were sent here and have not ended. It is paid for from ``ordered_s`` to
    ``gone_s``, a failure's downtime included. ``version`` tells its latest entry on the timeline from stale ones.
    """

    def __init__(
        self,
        number: int,
        kind: ReplicaKind,
        recorder: Recorder,
        *,
        longest_jump: int | None = None,
        watch: Watch | None = None,
        ordered_s: float = 0.0,
    ) -> None:
        self.number, self.kind, self.weight = number, kind, kind.weight
        self.slots = kind.policy.slots
        self.in_flight = self.version = 0
        self.state = STARTING
        self.is_cut = False
        self.ordered_s, self.gone_s = ordered_s, inf
        self._recorder, self._longest_jump, self._watch = recorder, longest_jump, watch
        self.replica = self._made()

    def _made(self) -> Replica:
        return self.kind.replica(self.number, self._recorder, longest_jump=self._longest_jump, watch=self._watch)

    @property
    def waiting(self) -> int:
        """Requests that wait here."""
        return self.replica.batcher.waiting_count

    def restart(self, now_s: float) -> None:
        """A fresh server: nothing is there, nothing is cached."""
        self.in_flight = 0
        self.replica = self._made()
        self.replica.wait(now_s)
