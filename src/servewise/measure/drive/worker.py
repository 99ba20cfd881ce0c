"""A worker process: ``python -m servewise.measure.drive.worker``, told on its standard input, heard on its output."""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading
from time import monotonic
from typing import Any

from servewise.measure.drive.drive import drive
from servewise.measure.drive.frames import Frames, framed
from servewise.measure.drive.job import Done, Ended, Job, Ready, Stop
from servewise.measure.drive.packing import Packed, packed
from servewise.measure.exchange import Exchange
from servewise.measure.sending import Sending

BATCH = 64
BATCH_S = 0.05
PIECE_BYTES = 1 << 20


class Voice:
    """Says messages from a thread of its own: a full pipe must not stop the loop."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._queue: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._say_all, daemon=True)
        self._thread.start()

    def say(self, message: object) -> None:
        """Say ``message`` soon."""
        self._queue.put(framed(message))

    def close(self) -> None:
        """Wait until all is said."""
        self._queue.put(None)
        self._thread.join()

    def _say_all(self) -> None:
        while (data := self._queue.get()) is not None:
            view = memoryview(data)
            try:
                while view:
                    view = view[os.write(self._descriptor, view) :]
            except OSError:  # nobody listens any more
                os._exit(1)


class Ear:
    """Hears messages in a thread of its own. The input's end means that the run has gone: then all stops at once."""

    def __init__(self, descriptor: int) -> None:
        self.jobs: queue.SimpleQueue[Job | Exception | None] = queue.SimpleQueue()
        self.stop: Stop | None = None
        self._descriptor = descriptor
        threading.Thread(target=self._hear_all, daemon=True).start()

    def _hear_all(self) -> None:
        frames = Frames()
        while data := os.read(self._descriptor, PIECE_BYTES):
            try:
                for message in frames.feed(data):
                    self._take(message)
            except Exception as error:  # what was sent cannot be unpickled here: the run must hear of it
                self.jobs.put(error)
        self.stop = Stop(at_once=True)
        self.jobs.put(None)

    def _take(self, message: Any) -> None:
        if isinstance(message, Stop):
            self.stop = message
        elif isinstance(message, Job):
            self.stop = None
            self.jobs.put(message)
        else:
            sys.path[:] = message


class Batches:
    """Gathers exchanges and says them together, at the latest ``BATCH_S`` after the first."""

    def __init__(self, voice: Voice) -> None:
        self._voice = voice
        self._waiting: list[Packed] = []
        self._since_s = 0.0

    def add(self, exchange: Exchange) -> None:
        """One more."""
        if not self._waiting:
            self._since_s = monotonic()
        self._waiting.append(packed(exchange))
        if len(self._waiting) >= BATCH:
            self.flush()

    def flush_old(self) -> None:
        """Say them if they have waited."""
        if self._waiting and monotonic() - self._since_s > BATCH_S:
            self.flush()

    def flush(self) -> None:
        """Say them."""
        if self._waiting:
            self._voice.say(Ended(self._waiting))
            self._waiting = []


def main() -> None:
    """Work until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the run tells its workers itself
    out = os.dup(1)
    os.dup2(2, 1)  # whatever is printed must not mix with what is said
    voice, ear = Voice(out), Ear(0)
    voice.say(Ready())
    while (job := ear.jobs.get()) is not None:
        voice.say(_failed(job) if isinstance(job, Exception) else _work(job, voice, ear))
    voice.close()


def _work(job: Job, voice: Voice, ear: Ear) -> Done:
    batches = Batches(voice)

    def stop() -> bool:
        batches.flush_old()
        if ear.stop is not None and ear.stop.at_once:
            raise KeyboardInterrupt
        return ear.stop is not None

    try:
        sending = drive(
            job.schedule,
            job.target,
            start_s=job.start_s,
            on_end=batches.add,
            until_s=job.until_s,
            stop=stop,
            keep_text=job.keep_text,
            keep_logprobs=job.keep_logprobs,
            drain_s=job.drain_s,
        )
        done = Done(sending)
    except KeyboardInterrupt:
        done = Done(Sending())
    except Exception as error:  # whatever a schedule raises: the run must hear of it, and keep what there is
        done = _failed(error)
    batches.flush()
    return done


def _failed(error: Exception) -> Done:
    return Done(Sending(), f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
