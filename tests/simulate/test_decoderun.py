"""The closed form of many steps against adding them up."""

from __future__ import annotations

import math

from hypothesis import example, given
from hypothesis import strategies as st

from servewise.simulate.decoderun import decode_run
from servewise.steptime.estimator import Line

lines = st.lists(st.builds(Line, st.floats(0, 1), st.floats(0, 1e-3), st.floats(0, 1e-3)), min_size=1, max_size=5)


# Two lines that meet further away than a float can say.
@example([Line(0.0625, 0.0, 0.0), Line(0.0, 2.2250738585e-313, 0.0), Line(0.0, 0.01, 0.0)], 1, 1, 0, 0, 17, math.inf)
@given(lines, *(st.integers(0, 2000),) * 4, st.integers(1, 300), st.floats(0.01, 500) | st.just(math.inf))
def test_closed_form_equals_the_sum(
    bounds: list[Line], context: int, growth: int, windowed: int, windowed_growth: int, steps: int, limit_s: float
) -> None:
    """Seconds equal the sum over steps of the largest line, and the run stops at the first end past the limit."""
    ran, seconds = decode_run(bounds, context, growth, windowed, windowed_growth, steps, limit_s)
    total, ends = 0.0, []
    for step in range(steps):
        read, inside = context + growth * step, windowed + windowed_growth * step
        total += max(base + per * read + per_inside * inside for base, per, per_inside in bounds)
        ends.append(total)

    assert math.isclose(seconds, ends[ran - 1], rel_tol=1e-9, abs_tol=1e-12)
    assert ran == steps or ends[ran - 1] >= limit_s * (1 - 1e-9)
    assert ran == 1 or ends[ran - 2] < limit_s * (1 + 1e-9)
