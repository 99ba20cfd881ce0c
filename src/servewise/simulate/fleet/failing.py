"""Servers that die at given times and come back, and their requests' second chances."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import cast

from servewise.errors import InputError, UnknownName
from servewise.records.columns import FAILED
from servewise.simulate.fleet.core import FleetCore
from servewise.simulate.fleet.member import DOWN, DRAINING, GONE, UP, Member
from servewise.simulate.fleet.outage import RULES, Outage, again
from servewise.simulate.fleet.timeline import COMES, FAILS, Event
from servewise.simulate.timed import UNSET, TimedSequence


class Failing:
    """Puts ``outages`` on the timeline of ``core``. Steps that ended by then count; the one under way is lost.

    Requests that only waited move to other replicas, by the router. Those that had begun, by ``rule``:

    - ``retry``: sent anew from the prompt. Tokens that the client has are not sent again: TTFT stays that of the first.
    - ``continue``: the prompt and the tokens that the client has are computed elsewhere, and the answer goes on.
    - ``fail``: they end as failed.

    ``retries`` counts, by request, how often it was sent again after it had begun.
    """

    def __init__(self, core: FleetCore, outages: Sequence[Outage], rule: str) -> None:
        if rule not in RULES:
            raise UnknownName("rule for failures", rule, RULES, hint=f"one of {', '.join(RULES)}")
        _check(outages, len(core.roster.members))
        self.retries: dict[int, int] = {}
        self._core, self._rule = core, rule
        core.handlers[FAILS] = self._fails
        core.handlers.setdefault(COMES, self._comes)
        for serial, outage in enumerate(outages):
            core.timeline.add(outage.at_s, FAILS, outage.number, serial, outage)

    def _fails(self, event: Event) -> None:
        outage: Outage = event[4]
        member, now_s, core = self._core.roster.members[outage.number], event[0], self._core
        if member.state not in (UP, DRAINING):
            return
        self._stop(member, now_s)
        lost = self._lose(member, now_s)
        returns = outage.back_s < inf and member.state == UP
        core.roster.become(member, DOWN if returns else GONE, now_s)
        core.router.gone(member.number)
        for sequence in lost:
            self._second_chance(member, sequence, now_s)
        if returns:
            core.timeline.add(outage.back_s, COMES, member.number, member.version, member)

    def _stop(self, member: Member, now_s: float) -> None:
        """What had ended by ``now_s`` is done; what was under way is not."""
        replica, core = member.replica, self._core
        if replica.running:
            if replica.halt(now_s):
                core.finish(member)
            else:
                core.under_way -= 1
        member.version += 1

    @staticmethod
    def _lose(member: Member, now_s: float) -> list[TimedSequence]:
        """What waited or ran there, each as far as it got; the server forgets all."""
        batcher = member.replica.batcher
        lost = [cast("TimedSequence", each) for each in batcher.unreleased()]
        for each in lost:
            batcher.finish(each)
        member.restart(now_s)
        return lost

    def _second_chance(self, member: Member, sequence: TimedSequence, now_s: float) -> None:
        core, begun = self._core, sequence.admitted_s is not UNSET
        if begun and self._rule == "fail":
            self._give_up(member, sequence, now_s)
            return
        if begun:
            self.retries[sequence.serial] = self.retries.get(sequence.serial, 0) + 1
        kept = min(sequence.generated, sequence.output_tokens - 1) if self._rule == "continue" else 0
        core.route(again(sequence, now_s, kept_tokens=kept), now_s)

    def _give_up(self, member: Member, sequence: TimedSequence, now_s: float) -> None:
        core = self._core
        if sequence.prefill_from_s is not UNSET:
            sequence.prefill_s += now_s - sequence.prefill_from_s
        core.recorder.ended(sequence, now_s, FAILED, member.replica)
        core.source.ended(sequence.serial, now_s)
        core.ended_count += 1

    def _comes(self, event: Event) -> None:
        member: Member = event[4]
        if member.state == DOWN:
            member.replica.wait(event[0])
            self._core.comes_up(member, event[0])


def _check(outages: Sequence[Outage], replicas: int) -> None:
    """Each names a replica that there is, and none begins while that one is down."""
    down_until: dict[int, float] = {}
    for each in sorted(outages, key=lambda outage: outage.at_s):
        if not 0 <= each.number < replicas:
            raise InputError(f"there is no replica {each.number} to fail", hint=f"0 to {replicas - 1}")
        if each.at_s < down_until.get(each.number, 0.0):
            raise InputError(f"replica {each.number} fails at {each.at_s:g} s while it is down")
        down_until[each.number] = each.back_s
