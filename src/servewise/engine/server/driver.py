"""The engine's thread: it alone touches the engine, carries out what handlers ask, and hands tokens to their loop.

Between two steps it takes commands from a queue; after each step all that the step told goes to the event loop in one
call. A reply's events come in order: ``Accepted`` or ``Refused`` first, ``Token``s, and an ``Ended`` for each choice.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from time import monotonic

from servewise.engine.running.engine import Engine, StepOutcome
from servewise.engine.running.generation import Emitted, Generation
from servewise.engine.sampling.sampler import Choice
from servewise.engine.sampling_settings import SamplingSettings
from servewise.engine.server.meters import Meters
from servewise.errors import InputError
from servewise.records.columns import COMPLETED

LONGEST_WAIT_S = 3600.0
KEPT_STEPS = 2_000  # records are begun anew after so many, some 300 kB: a server runs for days
LONGEST_STEP_S = 60.0
STUCK_S = 600.0  # a step that takes longer does not come back: the slowest, a long prompt on a CPU, takes a minute
UNREAD_TOKENS = 4096
TOO_SLOW = "the client reads too slowly: it is too far behind its reply"
STOPPING = "the server is stopping"


@dataclass(frozen=True, slots=True)
class Accepted:
    """Every choice is queued."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The engine can never run it."""

    error: InputError


@dataclass(frozen=True, slots=True)
class Token:
    """A token of choice ``index``; ``text`` is what can be shown now, ``finish_reason`` comes with the last."""

    index: int
    choice: Choice
    text: str
    finish_reason: str | None
    stop: str | None
    cached_tokens: int


@dataclass(frozen=True, slots=True)
class Ended:
    """Choice ``index`` is over; ``error`` says why it failed, if it did."""

    index: int
    error: str


Event = Accepted | Refused | Token | Ended


class Reply:
    """A request's choices, from the handler's side: its events. ``serials`` belong to the engine's thread.

    Of ``most`` events that nobody has taken the reply is ``lost``: they are dropped, and ``on_lost`` is called.
    """

    def __init__(self, choices: int, most: int = UNREAD_TOKENS) -> None:
        self.choices = choices
        self.events: asyncio.Queue[Event] = asyncio.Queue()
        self.serials: list[int] = []
        self.lost = False
        self.on_lost: Callable[[], None] | None = None
        self._most = max(most, choices)

    def deliver(self, event: Event) -> None:
        """Put an event, on the event loop."""
        if self.lost:
            return
        if self.events.qsize() < self._most or isinstance(event, Ended):
            self.events.put_nowait(event)
            return
        self.lost = True
        while not self.events.empty():
            self.events.get_nowait()
        self.events.put_nowait(Ended(0, TOO_SLOW))
        if self.on_lost is not None:
            self.on_lost()


class Driver:
    """Steps ``engine`` in a thread of its own from ``start`` to ``stop``.

    ``unread_tokens``: what a reply's reader may be behind. ``stuck_s``: a step that takes longer is taken for stuck.
    """

    def __init__(
        self, engine: Engine, meters: Meters, *, unread_tokens: int = UNREAD_TOKENS, stuck_s: float = STUCK_S
    ) -> None:
        self._engine, self._meters = engine, meters
        self._unread_tokens, self._stuck_s = unread_tokens, stuck_s
        self.patience_s = LONGEST_STEP_S  # what ``stop`` waits for the step that runs
        self._busy_since = inf  # when the turn that runs began [monotonic s]
        self._inbox: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._told: list[tuple[Reply, Event]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, name="servewise-engine", daemon=True)
        self._working = True
        self._failures = 0  # steps that failed in a row
        self._reason = STOPPING  # why requests are abandoned
        self._open: set[Reply] = set()  # submitted and not cancelled (every handler cancels at its end)
        self._broken = ""  # the defect after which the engine is not to be trusted

    @property
    def alive(self) -> bool:
        """Whether the engine steps."""
        return not self.trouble

    @property
    def trouble(self) -> str:
        """Why the engine does not step; empty: it does, or there is nothing to do."""
        if self._broken:
            return self._broken
        if not self._thread.is_alive():
            return "the engine's thread does not run"
        busy_s = monotonic() - self._busy_since
        return f"a step has run for {busy_s:.0f} s" if busy_s > self._stuck_s else ""

    @property
    def now_s(self) -> float:
        """The engine's clock; any thread may read it."""
        return self._engine.now_s

    def start(self) -> None:
        """Begin; events go to the running event loop."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    def drain(self) -> None:
        """No more requests will come: policies that wait for a full batch need not."""
        self._inbox.put(self._engine.close)

    def abandon(self) -> None:
        """Every request that still waits or runs ends as failed."""
        self._inbox.put(partial(self._abandon, self._reason))

    async def stop(self) -> None:
        """End what still runs, and the thread after its step; one that takes long is left to the process's end."""
        self._inbox.put(self._end_work)
        await asyncio.to_thread(self._thread.join, self.patience_s)

    async def submit(self, wanted: Sequence[tuple[Sequence[int], SamplingSettings]], arrival_s: float) -> Reply:
        """Queue a request's choices, all or none; raises InputError where one can never run.

        The caller must ``cancel`` the reply unless it has seen all its choices end.
        """
        reply = Reply(len(wanted), self._unread_tokens)
        self._inbox.put(partial(self._submit, reply, wanted, arrival_s))
        try:
            first = await reply.events.get()
        except BaseException:
            self.cancel(reply)
            raise
        if isinstance(first, Refused):
            raise first.error
        return reply

    def cancel(self, reply: Reply) -> None:
        """End those of a reply's choices that have not ended; their blocks are free before the next step."""
        self._inbox.put(partial(self._cancel, reply))

    # From here on: the engine's thread.

    def _run(self) -> None:
        while self._working:
            self._busy_since = monotonic()
            try:
                self._turn()
            except Exception as error:
                self._break(error)
            self._hand_out()
        if not self._broken:
            self._engine.abandon()
        self._hand_out()

    def _turn(self) -> None:
        """A step, what it told, and the commands that came meanwhile."""
        if self._broken:
            self._obey(inf)
            return
        ran = self._step().batch is not None
        self._hand_out()
        self._obey(0.0 if ran else self._engine.wake_s() - self._engine.now_s)

    def _break(self, error: Exception) -> None:
        """A defect: every request fails from now on, and none waits for ever."""
        traceback.print_exc()
        self._broken = f"the engine is broken: {_line(error)}"
        self._told += [(reply, Ended(0, self._broken)) for reply in self._open]
        self._open.clear()

    def _end_work(self) -> None:
        self._working = False

    def _obey(self, wait_s: float) -> None:
        """Carry out the commands that are there, after waiting for the first for up to ``wait_s``."""
        try:
            if wait_s > 0:
                self._busy_since = inf
                self._inbox.get(timeout=None if wait_s == inf else min(wait_s, LONGEST_WAIT_S))()
            while True:
                self._inbox.get_nowait()()
        except queue.Empty:
            self._meters.state(self._engine.running, self._engine.waiting, self._usage())
            self._hand_out()

    def _usage(self) -> float:
        pool = self._engine.pool
        return 1.0 - pool.available / pool.blocks

    def _step(self) -> StepOutcome:
        """A step; one that fails is tried once again, then all requests fail and the server goes on."""
        try:
            outcome = self._engine.step()
        except Exception as error:
            self._failures += 1
            if self._failures > 1:
                traceback.print_exc()
                self._abandon(f"a step failed: {_line(error)}")
            return StepOutcome(None) if self._engine.idle else self._step()
        self._failures = 0
        if outcome.batch is not None:
            batch = outcome.batch
            tokens = batch.decodes + sum(chunk.new_tokens for chunk in batch.chunks)
            self._meters.stepped(len(batch.preempted), tokens)
        if len(self._engine.steps) > KEPT_STEPS:
            self._engine.new_records()
        return outcome

    def _abandon(self, reason: str) -> None:
        usual, self._reason = self._reason, reason
        self._engine.abandon()
        self._reason, self._failures = usual, 0

    def _submit(self, reply: Reply, wanted: Sequence[tuple[Sequence[int], SamplingSettings]], arrival_s: float) -> None:
        if self._broken:
            self._told += [(reply, Accepted()), (reply, Ended(0, self._broken))]
            return
        self._open.add(reply)
        try:
            for index, (prompt, settings) in enumerate(wanted):
                generation = self._engine.submit(
                    prompt,
                    settings,
                    on_token=partial(self._on_token, reply, index),
                    on_end=partial(self._on_end, reply, index),
                    arrival_s=arrival_s,
                )
                reply.serials.append(generation.serial)
        except InputError as error:
            self._told.append((reply, Refused(error)))
            self._cancel(reply)
        else:
            self._told.append((reply, Accepted()))

    def _cancel(self, reply: Reply) -> None:
        self._open.discard(reply)
        if self._broken:
            return
        for serial in reply.serials:
            self._engine.cancel(serial)

    def _on_token(self, reply: Reply, index: int, emitted: Emitted) -> None:
        generation, choice, text, finish_reason = emitted
        self._meters.token(generation)
        cached = generation.first_cached_tokens or 0
        self._told.append((reply, Token(index, choice, text, finish_reason, generation.stop, cached)))

    def _on_end(self, reply: Reply, index: int, generation: Generation) -> None:
        self._meters.ended(generation)
        error = generation.error or ("" if generation.status == COMPLETED else self._reason)
        self._told.append((reply, Ended(index, error)))

    def _hand_out(self) -> None:
        if self._told:
            assert self._loop is not None
            try:
                self._loop.call_soon_threadsafe(_deliver, self._told)
            except RuntimeError:  # the loop was closed under us: nobody listens any more
                self._working = False
            self._told = []


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__


def _deliver(told: Sequence[tuple[Reply, Event]]) -> None:
    for reply, event in told:
        reply.deliver(event)
