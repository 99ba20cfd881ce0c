"""Which timings stand: those during which no other program held the threads up, as in ``probe.ops.timing``."""

from __future__ import annotations

from collections.abc import Sequence

from servewise.probe.ops.timing import DISTURBED, FEWEST_CLEAN


def undisturbed(seconds: Sequence[float], waited_s: Sequence[float]) -> list[int]:
    """Places of the timings that stand: threads waited for a core for at most 2% of them.

    Where those are fewer than three or than a tenth of all, the least disturbed third stands.

    >>> undisturbed([1.0, 1.0, 1.0, 1.0], [0.0, 0.5, 0.01, 0.0])
    [0, 2, 3]
    """
    shares = [waited / took for took, waited in zip(seconds, waited_s, strict=True)]
    clean = [place for place, each in enumerate(shares) if each <= DISTURBED]
    if len(clean) >= max(FEWEST_CLEAN, len(shares) / 10):
        return clean
    order = sorted(range(len(shares)), key=lambda place: shares[place])
    return sorted(order[: max(FEWEST_CLEAN, len(shares) // 3)])
