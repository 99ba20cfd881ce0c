"""The stand-in server's one loop: reads requests, and lets each write go in its time."""

from __future__ import annotations

import os
import pickle
import select
import selectors
import socket
import ssl
import time
from heapq import heappop, heappush
from math import ceil, inf
from pathlib import Path

import httptools

from servewise.measure.mock.connection import Connection, Message
from servewise.measure.mock.log import MockLog, RequestLog
from servewise.measure.mock.meters import Meters
from servewise.measure.mock.plan import MockPlan
from servewise.measure.mock.routes import Routes
from servewise.measure.mock.script import End, Script
from servewise.measure.mock.slots import Slots
from servewise.measure.mock.stamp import Reading

BURST = 256
DEAD = 70  # exit status of a death that the plan asked for


class Job:
    """An answer under way: the next write is ``script.writes[place]``."""

    __slots__ = ("connection", "keep_alive", "log", "over", "place", "running", "script")

    def __init__(self, connection: Connection, script: Script, log: RequestLog, keep_alive: bool) -> None:
        self.connection, self.script, self.log, self.keep_alive = connection, script, log, keep_alive
        self.place, self.running, self.over = 0, False, False


class MockServer:
    """Serves on ``listener`` until told to stop on ``control``; ``death_log`` gets the log when the plan has it die."""

    def __init__(self, plan: MockPlan, listener: socket.socket, tls: ssl.SSLContext | None, death_log: Path) -> None:
        self._plan, self._listener, self._tls, self._death_log = plan, listener, tls, death_log
        self._meters = Meters(plan.kv_tokens)
        self._routes = Routes(plan, self._meters)
        self._slots: Slots[Job] = Slots(plan.slots)
        self._timers: list[tuple[float, int, Job]] = []
        self._logs: list[RequestLog] = []
        self._serial = 0
        self._selector = selectors.DefaultSelector()
        self._selector.register(listener, selectors.EVENT_READ)
        self._wait_on = [self._selector.fileno()]

    def turn(self, control: int | None = None) -> bool:
        """One turn of the loop; whether there is something to read on ``control``."""
        ready = self._wait()
        self._due(time.monotonic())
        told = False
        for key, mask in self._selector.select(0) if ready else ():
            if key.fileobj is self._listener:
                self._accept()
            elif key.fileobj == control:
                told = True
            else:
                self._serve(key.data, mask)
        return told

    def watch(self, control: int) -> None:
        """Let a turn end when something comes on ``control``."""
        self._selector.register(control, selectors.EVENT_READ)

    def refuse(self) -> None:
        """Listen no more; what is under way goes on."""
        self._selector.unregister(self._listener)
        self._listener.close()

    def write_log(self, path: Path) -> None:
        """The log so far, as a file."""
        path.write_bytes(pickle.dumps(MockLog(tuple(self._logs), time.process_time())))

    def forget(self) -> None:
        """Clear the log and the prefix cache, and count requests from 0 again."""
        self._logs, self._serial = [], 0
        if self._routes.cache is not None:
            self._routes.cache.clear()

    # times
    def _wait(self) -> bool:
        """Until a socket is ready or a write is due; whether one is. select counts microseconds, epoll milliseconds."""
        if not self._timers:
            return bool(select.select(self._wait_on, [], [])[0])
        due_s = self._timers[0][0]
        if self._plan.tick_s:
            due_s = ceil(due_s / self._plan.tick_s) * self._plan.tick_s
        return bool(select.select(self._wait_on, [], [], max(0.0, due_s - time.monotonic()))[0])

    def _due(self, now_s: float) -> None:
        """The writes whose time has come, in the order of their times; sockets are looked at after so many."""
        timers = self._timers
        for _ in range(BURST):
            if not timers or timers[0][0] > now_s:
                return
            due_s, serial, job = heappop(timers)
            if job.over:
                continue
            writes = job.script.writes
            write = writes[job.place]
            job.place += 1
            if not self._write(job, write.data, due_s, write.tokens):
                continue
            if job.place < len(writes):
                heappush(timers, (job.log.started_s + writes[job.place].after_s, serial, job))
            else:
                self._finish(job, due_s)

    def _write(self, job: Job, data: bytes, due_s: float, tokens: int) -> bool:
        """Send and log; False where the client has gone."""
        if not data:
            return True
        connection, log = job.connection, job.log
        before_s = time.monotonic()
        try:
            out = connection.send(data)
        except OSError:
            self._gone(connection)
            return False
        if not out:
            self._selector.modify(connection.sock, selectors.EVENT_READ | selectors.EVENT_WRITE, connection)
            if tokens:
                connection.owe(log, due_s, before_s, tokens)
        elif tokens:
            self._sent(log, due_s, before_s, tokens)
        return True

    def _sent(self, log: RequestLog, due_s: float, before_s: float, tokens: int) -> None:
        log.sent_s.append(time.monotonic())
        log.before_s.append(before_s)
        log.due_s.append(due_s)
        log.told.append(tokens)
        self._meters.generated += tokens

    # requests
    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except (BlockingIOError, ConnectionAbortedError, OSError):
                return
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._tls is not None:
                sock = self._tls.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
            connection = Connection(sock)
            self._selector.register(sock, selectors.EVENT_READ, connection)
            self._serve(connection, selectors.EVENT_READ)

    def _serve(self, connection: Connection, mask: int) -> None:
        try:
            if mask & selectors.EVENT_WRITE:
                self._flush(connection)
            if mask & selectors.EVENT_READ and connection.open:
                self._read(connection)
        except (OSError, httptools.HttpParserError):
            self._gone(connection)

    def _flush(self, connection: Connection) -> None:
        owed = connection.flush()
        if owed is None:
            return
        self._selector.modify(connection.sock, selectors.EVENT_READ, connection)
        for log, due_s, before_s, tokens in owed:
            self._sent(log, due_s, before_s, tokens)
        if connection.then is not None:
            self._hang_up(connection, connection.then)

    def _read(self, connection: Connection) -> None:
        while (came := connection.read()) is not None:
            reading, message = came
            if not reading.data:
                self._gone(connection)
                return
            if message is not None:
                self._answer(connection, message, reading)
            if self._tls is None or not connection.open:
                return

    def _answer(self, connection: Connection, message: Message, reading: Reading) -> None:
        if connection.job is not None:  # pipelined requests are not served
            self._gone(connection)
            return
        log = RequestLog(-1, reading.time_s, time.monotonic(), reading.by)
        page = self._routes.page(message)
        if page is not None:
            self._begin(Job(connection, page, log, message.keep_alive))
            return
        log.serial, self._serial = self._serial, self._serial + 1
        self._logs.append(log)
        plan = self._plan
        full = plan.queue is not None and self._slots.full and self._slots.waiting >= plan.queue
        script, asked, log.name = self._routes.generation(message, log.serial, full=full)
        log.user = None if asked is None else asked.user
        log.prompt_tokens, log.cached_tokens, log.tokens = script.prompt_tokens, script.cached_tokens, script.tokens
        job = Job(connection, script, log, message.keep_alive)
        if script.tokens:
            self._admit(job)
        else:
            self._begin(job)

    def _admit(self, job: Job) -> None:
        """A generation takes a slot or waits for one."""
        self._meters.prompt += job.script.prompt_tokens
        free_s = self._slots.enter(job)
        if free_s is not None:
            job.running = True
            self._begin(job, free_s)
        else:
            job.connection.job = job
            self._write(job, job.script.at_once, job.log.arrived_s, 0)
        self._gauge()

    def _begin(self, job: Job, free_s: float = -inf) -> None:
        """Service begins when the request came, but not before ``free_s``, when its slot became free."""
        job.connection.job = job
        job.log.started_s = max(job.log.arrived_s, free_s)
        if self._write(job, job.script.at_once, job.log.arrived_s, 0):
            self._schedule(job)

    def _schedule(self, job: Job) -> None:
        if job.running:
            self._meters.kv_used += job.script.prompt_tokens + job.script.tokens
        if job.script.writes:
            heappush(self._timers, (job.log.started_s + job.script.writes[0].after_s, job.log.serial, job))
        else:
            self._finish(job, job.log.started_s)

    def _finish(self, job: Job, due_s: float) -> None:
        """All writes are out (or in the backlog)."""
        end, log = job.script.end, job.log
        if end is End.DIE:
            self.write_log(self._death_log)
            os._exit(DEAD)
        if end is End.STALL:
            return
        whole = sum(log.told) == job.script.tokens or bool(job.connection.backlog)
        log.ended = "refused" if not job.script.tokens else "whole" if whole else "cut"
        self._over(job, due_s)
        then = End.CLOSE if end is End.KEEP and not job.keep_alive else end
        if then is End.KEEP:
            return
        if job.connection.backlog and then is not End.RESET:
            job.connection.then = then
        else:
            self._hang_up(job.connection, then)

    def _over(self, job: Job, at_s: float) -> None:
        """The job holds nothing any more; who waited longest takes its slot at ``at_s``."""
        job.over, job.connection.job, job.log.ended_s = True, None, time.monotonic()
        if not job.script.tokens:
            return
        if not job.running:
            self._slots.give_up(job)
        else:
            self._meters.kv_used -= job.script.prompt_tokens + job.script.tokens
            self._meters.finished += job.log.ended == "whole"
            following = self._slots.leave(at_s)
            if following is not None:
                following.running, following.log.started_s = True, max(at_s, following.log.arrived_s)
                self._schedule(following)
        self._gauge()

    def _gauge(self) -> None:
        self._meters.running, self._meters.waiting = self._slots.running, self._slots.waiting

    def _hang_up(self, connection: Connection, how: End) -> None:
        self._selector.unregister(connection.sock)
        connection.close(reset=how is End.RESET)

    def _gone(self, connection: Connection) -> None:
        """The client went away, or sent what is no HTTP: what it had asked for is dropped, its slot is free."""
        if not connection.open:
            return
        self._hang_up(connection, End.CLOSE)
        job = connection.job
        if isinstance(job, Job) and not job.over:
            job.log.ended = "gone"
            self._over(job, time.monotonic())
