"""A worker process: ``python -m servewise.measure.drive.worker``, told on its standard input, heard on its output."""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading
from dataclasses import replace
from time import monotonic
from typing import Any

from servewise.measure.drive.batches import Batches
from servewise.measure.drive.drive import drive
from servewise.measure.drive.frames import Frames, framed
from servewise.measure.drive.job import Done, Job, Ready, Setup, Stop
from servewise.measure.drive.noting import Noting
from servewise.measure.sending import Sending

PIECE_BYTES = 1 << 20
LATE = "a worker had its share {:.3f} s after the start"


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
        self.ahead_s = 0.0
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
        elif isinstance(message, Setup):
            sys.path[:] = message.path
            self.ahead_s = message.ahead_s


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
    batches = Batches(voice.say)
    start_s = job.start_s - ear.ahead_s
    late_s = monotonic() - start_s

    def stop() -> bool:
        batches.flush_old()
        if ear.stop is not None and ear.stop.at_once:
            raise KeyboardInterrupt
        return ear.stop is not None

    try:
        sending = drive(
            Noting(job.schedule, batches.begun),
            job.target,
            start_s=start_s,
            on_end=batches.ended,
            stop=stop,
            terms=job.terms,
        )
        done = Done(sending if late_s <= 0 else replace(sending, notes=(*sending.notes, LATE.format(late_s))))
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
