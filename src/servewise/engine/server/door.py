"""Who may come in: as many choices as run and wait at most; nobody while the server stops.

It lives on the event loop and counts exactly: a request enters with its choices and leaves however it ends.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from servewise.engine.server.fault import Fault

REMEMBERED = 64  # departures from which the rate is taken
RECENT_S = 60.0
UNKNOWN_S = 5  # said where nothing has ended lately: there is no rate to tell from
MOST_S = 600


class Door:
    """``places`` choices may be inside at once; ``meters`` hear who is turned away."""

    def __init__(self, places: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.places, self.inside, self.closed = places, 0, False
        self.turned_away = {"overloaded": 0, "stopping": 0}
        self._clock = clock
        self._left: deque[float] = deque(maxlen=REMEMBERED)

    def close(self) -> None:
        """Nobody enters any more."""
        self.closed = True

    def check(self, choices: int = 1) -> None:
        """Raise Fault: 503 while the server stops, 429 where there is no room, 400 where there never is."""
        if self.closed:
            raise self._away("stopping", 503, "the server is stopping", 1)
        if choices > self.places:
            message = f"prompts x n is {choices}, and this server holds {self.places} at once"
            raise Fault(message, param="n", code="invalid_value")
        over = self.inside + choices - self.places
        if over > 0:
            message = f"the server is full: {self.inside} choices run or wait of {self.places} that may"
            raise self._away("overloaded", 429, message, self.wait_s(over))

    @contextmanager
    def entered(self, choices: int) -> Iterator[None]:
        """Inside for the time of the block; raises Fault as ``check`` does."""
        self.check(choices)
        self.inside += choices
        try:
            yield
        finally:
            self.inside -= choices
            self._left.extend([self._clock()] * min(choices, REMEMBERED))

    def wait_s(self, over: int) -> int:
        """Whole seconds until ``over`` choices will have left, at the rate of the last minute."""
        now_s = self._clock()
        recent = [each for each in self._left if now_s - each <= RECENT_S]
        if not recent:
            return UNKNOWN_S
        seconds = over * max(now_s - recent[0], 1.0) / len(recent)
        return min(max(1, math.ceil(seconds)), MOST_S)

    def _away(self, why: str, status: int, message: str, seconds: int) -> Fault:
        self.turned_away[why] += 1
        headers = {"retry-after": str(seconds)} | ({"connection": "close"} if status == 503 else {})
        return Fault(message, status=status, code=why, headers=headers)
