"""First come, first served."""

from __future__ import annotations

from collections import deque

from servewise.batching.sequence import Sequence


class ArrivalQueue(deque[Sequence]):
    """In order of arrival; a preempted one goes to the front: vLLM's fcfs (v1/core/sched/request_queue.py, 0.19)."""

    newest_last = True
    rejoins_last = False

    give_back = deque.appendleft
    take = deque.popleft

    def arrange(self) -> None:
        """Nothing changes while they wait."""

    def head(self) -> Sequence:
        """Who came first."""
        return self[0]


class EndOfQueue(ArrivalQueue):
    """In order of arrival; a preempted one starts at the end again: SGLang's fcfs (managers/scheduler.py, 0.5.6)."""

    rejoins_last = True

    give_back = deque.append
