"""The event core of two pools: prompts to the one, their KV over links to the other."""

from __future__ import annotations

from collections.abc import Callable
from math import nan

from servewise.records.columns import UNFINISHED
from servewise.simulate.arrivals import Arrivals
from servewise.simulate.disaggregated.parts import Answer, Prompt
from servewise.simulate.disaggregated.transfers import Transfers
from servewise.simulate.fleet.core import FleetCore
from servewise.simulate.fleet.member import Member
from servewise.simulate.fleet.roster import Roster
from servewise.simulate.fleet.routers.router import Router
from servewise.simulate.fleet.timeline import MOVED, Event
from servewise.simulate.recorder import Recorder
from servewise.simulate.timed import TimedSequence
from servewise.workload.request import Request


class DisaggregatedCore(FleetCore):
    """The first ``prefills`` members compute prompts, the others decode; each pool has its router.

    A decode server is chosen when the prompt is done. From then on the request counts as in flight there.
    """

    def __init__(
        self,
        source: Arrivals,
        roster: Roster,
        routers: tuple[Router, Router],
        recorder: Recorder,
        *,
        prefills: int,
        transfers: Transfers,
        kv_bytes: Callable[[int], float],
    ) -> None:
        super().__init__(source, roster, routers[0], recorder)
        self._prefilling, self._decoding = roster.up[:prefills], roster.up[prefills:]
        self._decode_router = routers[1]
        self._transfers, self._kv_bytes = transfers, kv_bytes
        self._on_their_way: dict[int, Answer] = {}
        self.handlers[MOVED] = self._moved

    def arrive(self, request: Request, now_s: float) -> None:
        """Its prompt goes to the first pool."""
        prompt = Prompt(request)
        self.deliver(self._prefilling[self.router.choose(prompt, self._prefilling)], prompt, now_s)

    def ended(self, member: Member, ended: list[TimedSequence]) -> None:
        """Prompts go on to the other pool; answers are done."""
        whole = []
        for each in ended:
            if isinstance(each, Prompt) and not each.is_all:
                self._hand_over(member, each)
            else:
                whole.append(each)
        self.left(member, len(ended) - len(whole), member.replica.now_s)
        super().ended(member, whole)

    def _hand_over(self, member: Member, prompt: Prompt) -> None:
        now_s, decoding = member.replica.now_s, self._decoding
        answer = Answer(prompt, now_s)
        receiver = decoding[self._decode_router.choose(answer, decoding)]
        receiver.in_flight += 1
        size_bytes = self._kv_bytes(prompt.prompt_tokens)
        there_s = self._transfers.send(member.number, receiver.number, size_bytes, now_s, prompt.prefill_s)
        self._on_their_way[answer.serial] = answer
        self.timeline.add(there_s, MOVED, answer.serial, 0, receiver)

    def _moved(self, event: Event) -> None:
        receiver: Member = event[4]
        receiver.in_flight -= 1  # ``deliver`` counts it
        self.deliver(receiver, self._on_their_way.pop(event[2]), event[0])

    def abandon(self) -> None:
        """What is on its way is unfinished too."""
        super().abandon()
        for answer in self._on_their_way.values():
            self.recorder.ended(answer, nan, UNFINISHED, self._decoding[0].replica)
