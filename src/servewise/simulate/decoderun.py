"""Many equal decode steps in closed form: how many fit before a deadline, and how long they take.

Step i (from 0) takes the largest of a few lines, line k being a_k + d_k * i: the batch does not change, and every step
reads the same number of KV tokens more than the one before. Between two crossings of lines one line rules, and its sum
over n steps from i is n * (a + d * i) + d * n * (n - 1) / 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, inf, sqrt

from servewise.steptime.estimator import Line


def decode_run(
    lines: Sequence[Line],
    context_tokens: int,
    context_growth: int,
    windowed_tokens: int,
    windowed_growth: int,
    steps: int,
    limit_s: float = inf,
) -> tuple[int, float]:
    """(steps run, their seconds): at most ``steps``, stopping at the first end at or after ``limit_s``.

    ``context_tokens`` and ``windowed_tokens`` are what the first step reads; each later one reads the growths more.
    At least one step runs.

    >>> decode_run([Line(1.0, 0.0)], 10, 2, 0, 0, 5)
    (5, 5.0)
    >>> decode_run([Line(0.0, 1.0)], 1, 1, 0, 0, 9, 6.0)
    (3, 6.0)
    """
    top_first = top_last = -inf
    first = rise = last = 0.0
    for base, per_context, per_windowed in lines:
        at_first = base + per_context * context_tokens + per_windowed * windowed_tokens
        slope = per_context * context_growth + per_windowed * windowed_growth
        at_last = at_first + slope * (steps - 1)
        top_last = max(top_last, at_last)
        if at_first > top_first or (at_first == top_first and slope > rise):
            top_first, first, rise, last = at_first, at_first, slope, at_last
    if last >= top_last:  # one line rules at both ends, so between them too: lines are straight
        return _piece(first, rise, steps, limit_s)
    firsts = [line[0] + line[1] * context_tokens + line[2] * windowed_tokens for line in lines]
    rises = [line[1] * context_growth + line[2] * windowed_growth for line in lines]
    return _pieces(firsts, rises, steps, limit_s)


def _pieces(firsts: list[float], rises: list[float], steps: int, limit_s: float) -> tuple[int, float]:
    done, seconds = 0, 0.0
    while done < steps and seconds < limit_s:
        ruler = _ruler(firsts, rises, done)
        first, rise = firsts[ruler], rises[ruler]
        until = _rules_until(firsts, rises, ruler, done, steps)
        ran, took = _piece(first + rise * done, rise, until - done, limit_s - seconds)
        done += ran
        seconds += took
        if done < until:
            break
    return done, seconds


def _ruler(firsts: list[float], rises: list[float], step: int) -> int:
    return max(range(len(firsts)), key=lambda each: (firsts[each] + rises[each] * step, rises[each]))


def _rules_until(firsts: list[float], rises: list[float], ruler: int, done: int, steps: int) -> int:
    first, rise = firsts[ruler], rises[ruler]
    until = steps
    for other, other_rise in zip(firsts, rises, strict=True):
        if other_rise > rise:
            crossing = (first - other) / (other_rise - rise)  # infinite, where their rises differ by next to nothing
            until = ceil(crossing) if crossing < until else until
    return max(until, done + 1)


def _piece(first: float, rise: float, steps: int, limit_s: float) -> tuple[int, float]:
    total = steps * first + rise * (steps * (steps - 1) // 2)
    if total <= limit_s:
        return steps, total
    count = _count_to(first, rise, limit_s, steps)
    return count, count * first + rise * (count * (count - 1) // 2)


def _count_to(first: float, rise: float, limit_s: float, steps: int) -> int:
    """The least n with n * first + rise * n (n - 1) / 2 >= limit_s, from 1 to ``steps``."""
    if limit_s <= first:
        return 1
    if rise * steps < 1e-12 * first:
        guess = limit_s / first
    else:
        half = first - rise / 2
        guess = (sqrt(half * half + 2 * rise * limit_s) - half) / rise
    count = min(steps, max(1, int(guess)))
    while count > 1 and (count - 1) * first + rise * ((count - 1) * (count - 2) // 2) >= limit_s:
        count -= 1
    while count < steps and count * first + rise * (count * (count - 1) // 2) < limit_s:
        count += 1
    return count
