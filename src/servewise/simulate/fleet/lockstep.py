"""Data-parallel ranks that keep step: every rank's step lasts as long as the slowest one's.

Ranks that share out the experts of a mixture model exchange tokens in every layer, so none can run ahead, and an idle
one computes a dummy batch while any other works (vLLM v0.11, v1/engine/core.py, DPEngineCoreProc.run_busy_loop and
execute_dummy_batch). Left out: what a rank's tokens cost the others beyond waiting, and vLLM's padding of all ranks to
the same CUDA graph size.
"""

from __future__ import annotations

from math import inf

from servewise.simulate.arrivals import Arrivals
from servewise.simulate.decoderun import decode_run
from servewise.simulate.fleet.core import FleetCore
from servewise.simulate.fleet.member import Member
from servewise.simulate.fleet.roster import Roster
from servewise.simulate.fleet.routers.router import Router
from servewise.simulate.fleet.timeline import STEP, Event
from servewise.simulate.recorder import Recorder
from servewise.steptime.estimator import Line


class LockstepCore(FleetCore):
    """A fleet whose replicas begin and end their steps together; a round is one step of all, or a jump over several."""

    def __init__(self, source: Arrivals, roster: Roster, router: Router, recorder: Recorder) -> None:
        super().__init__(source, roster, router, recorder)
        self._working: list[Member] = []  # those with work in the round under way, in order of number
        self._lines: list[Line] = []
        self._start_s, self._steps, self._version, self._is_cut = 0.0, 0, 0, False

    def plan(self, now_s: float) -> None:
        """All begin a round, if none is under way and anyone has work."""
        if self._working or not self.touched:
            return
        self.touched.clear()
        for member in self.roster.up:
            member.replica.wait(now_s)
            if self.begins(member):
                self._working.append(member)
        if self._working:
            paces = [member.replica.pace() for member in self._working]
            self._lines = [line for _, lines in paces for line in lines]
            self._start_s, self._is_cut = now_s, False
            self._run(min(steps for steps, _ in paces), inf)

    def _run(self, steps: int, limit_s: float) -> None:
        """All ranks run ``steps`` steps, or to the first end at or after ``limit_s`` from the round's start."""
        self._steps, spent_s = decode_run(self._lines, 0, 1, 0, 0, steps, limit_s)
        for member in self._working:
            member.replica.keep_pace(self._steps, spent_s)
        self._version += 1
        self.timeline.add(self._start_s + spent_s, STEP, 0, self._version, None)

    def step(self, event: Event) -> None:
        """The round ends, unless the entry is stale."""
        if event[3] != self._version:
            return
        working, self._working = self._working, []
        for member in working:
            self.finish(member)
        self.touched += working

    def reach(self, member: Member, now_s: float) -> None:
        """A round that ``member`` could join later ends with the first step at or after ``now_s``."""
        self.touched.append(member)
        if self._working and self._steps > 1 and not self._is_cut and member.replica.joinable:
            self._is_cut = True
            self._run(self._steps, now_s - self._start_s)

    def wake(self, event: Event) -> None:
        """A policy's own hour: it may begin with the next round."""
        member: Member = event[4]
        if event[3] == member.version:
            self.reach(member, event[0])
