"""The client's own error over a run, as it is gathered."""

from __future__ import annotations

import time
from array import array
from collections import Counter

from servewise.measure.sending import Sending

STALL_S = 1e-3
MOST_SAMPLES = 100_000


class Sample:
    """Every nth of many values, so that their number is bounded: thinned by half whenever there are too many."""

    def __init__(self) -> None:
        self.values = array("d")
        self.seen = 0
        self._every = 1

    def extend(self, more: list[float]) -> None:
        """Add values in order."""
        self.values.extend(more[-self.seen % self._every :: self._every])
        self.seen += len(more)
        while len(self.values) > MOST_SAMPLES:
            self.values = self.values[::2]
            self._every *= 2


class OwnError:
    """Lateness, stalls, read lags and merged events of one sender, as they come."""

    def __init__(self) -> None:
        self.lateness_s = array("d")
        self.stalls_s = array("d")
        self.most_open = 0
        self.noted: Counter[str] = Counter()
        self._lags_s = Sample()
        self._merged_s = Sample()
        self._cpu_s = time.thread_time()

    def stalled(self, away_s: float) -> None:
        """The loop was away from its sockets for ``away_s``."""
        if away_s > STALL_S:
            self.stalls_s.append(away_s)

    def read(self, lags_s: list[float], merged_s: list[float]) -> None:
        """An answer's reads: so long had data lain, and by so much may merged events have come earlier."""
        self._lags_s.extend(lags_s)
        self._merged_s.extend(merged_s)

    def sending(self, wall_s: float) -> Sending:
        """All of it, at the end of the run."""
        return Sending(
            lateness_s=tuple(self.lateness_s),
            stalls_s=tuple(self.stalls_s),
            read_lag_s=tuple(self._lags_s.values),
            merged=self._merged_s.seen,
            merged_s=tuple(self._merged_s.values),
            cpu_s=time.thread_time() - self._cpu_s,
            wall_s=wall_s,
            most_open=self.most_open,
            notes=tuple(f"{count} x {note}" for note, count in sorted(self.noted.items())),
        )
