"""A sum that is rounded once is that of ``math.fsum``, in whatever parts the numbers come."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from servewise.metrics.streamed.exact import ExactSum

NUMBERS = st.lists(st.floats(-1e150, 1e150) | st.floats(-1.0, 1.0), max_size=60)


@settings(max_examples=300, deadline=None)
@given(numbers=NUMBERS, cut=st.integers(0, 60))
def test_any_parts_sum_to_the_nearest_double(numbers: list[float], cut: int) -> None:
    """Hugely different magnitudes and cancellation included."""
    found = ExactSum()
    found.add(np.array(numbers[:cut]))
    found.add(np.array(numbers[cut:]))
    assert found.value == math.fsum(numbers)
