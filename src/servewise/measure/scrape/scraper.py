"""A thread that asks a server for its metrics once a second while it is measured."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import TracebackType

from servewise.errors import ServewiseError
from servewise.measure.scrape.exposition import samples
from servewise.measure.scrape.meanings import WANTED, dialect_of, quantities
from servewise.measure.scrape.timeline import Timeline

EVERY_S = 1.0
Fetch = Callable[[], bytes]


class Scraper:
    """Samples while it is entered. ``fetch`` brings the page (it may block, and fail); ``timeline`` grows.

    A server without metrics costs one request: then nothing more is asked, and ``reason`` says why. A page that fails
    later is counted, and asked for again. Times count from when it was made, or from ``count_from``.
    """

    def __init__(self, fetch: Fetch, every_s: float = EVERY_S) -> None:
        self.timeline = Timeline()
        self.reason = ""
        self._fetch, self._start_s, self._every_s = fetch, time.monotonic(), every_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="metrics", daemon=True)

    def __enter__(self) -> Scraper:
        if self._sample():
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
            self._sample()

    def count_from(self, start_s: float) -> None:
        """Times count from ``start_s`` on the monotonic clock, also those of the samples before it (below 0)."""
        earlier = start_s - self._start_s
        self._start_s = start_s
        self.timeline.time_s = [each - earlier for each in self.timeline.time_s]

    def _run(self) -> None:
        due = time.monotonic() + self._every_s
        while not self._stop.wait(max(due - time.monotonic(), 0.0)):
            self._sample()
            due = max(due + self._every_s, time.monotonic())

    def _sample(self) -> bool:
        """One look at the server; whether it told anything that is known."""
        try:
            page = self._fetch()
            found = samples(page, WANTED)
        except (ServewiseError, OSError) as error:
            return self._failed(str(error))
        time_s = time.monotonic() - self._start_s
        dialect = dialect_of(found)
        if dialect is None:
            return self._failed("its metrics are of no server that is known")
        self.timeline.engine = dialect.engine
        self.timeline.add(time_s, quantities(found, dialect))
        return True

    def _failed(self, reason: str) -> bool:
        self.reason = self.reason or reason
        self.timeline.failures += 1
        return False
