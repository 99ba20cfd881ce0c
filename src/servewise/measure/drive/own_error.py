"""The client's own error over a run, as it is gathered."""

from __future__ import annotations

import time
from array import array
from collections import Counter

from servewise.measure.sending import Sending

STALL_S = 1e-3
MOST_LAGS = 100_000


class OwnError:
    """Lateness, stalls and read lags of one sender. Read lags are thinned by halves once there are too many."""

    def __init__(self) -> None:
        self.lateness_s = array("d")
        self.stalls_s = array("d")
        self.most_open = 0
        self.noted: Counter[str] = Counter()
        self._lags_s = array("d")
        self._every = 1
        self._seen = 0
        self._cpu_s = time.thread_time()

    def stalled(self, away_s: float) -> None:
        """The loop was away from its sockets for ``away_s``."""
        if away_s > STALL_S:
            self.stalls_s.append(away_s)

    def lagged(self, lags_s: list[float]) -> None:
        """So long had data lain when it was read."""
        offset = -self._seen % self._every
        self._lags_s.extend(lags_s[offset :: self._every])
        self._seen += len(lags_s)
        if len(self._lags_s) > MOST_LAGS:
            self._lags_s = self._lags_s[::2]
            self._every *= 2

    def sending(self, wall_s: float) -> Sending:
        """All of it, at the end of the run."""
        return Sending(
            lateness_s=tuple(self.lateness_s),
            stalls_s=tuple(self.stalls_s),
            read_lag_s=tuple(self._lags_s),
            cpu_s=time.thread_time() - self._cpu_s,
            wall_s=wall_s,
            most_open=self.most_open,
            notes=tuple(f"{count} x {note}" for note, count in sorted(self.noted.items())),
        )
