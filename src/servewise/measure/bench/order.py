"""In what order conditions are measured: each repeat is a block that has every condition once, shuffled anew.

A server that warms up, throttles or fills its disk drifts with time. In a fixed order the drift would be taken for an
effect of the load; in random blocks it is spread over all conditions alike (Montgomery, Design and Analysis of
Experiments, chapter 4: randomised complete blocks).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from servewise.workload.streams import stream

T = TypeVar("T")


def block(conditions: Sequence[T], seed: int, repeat: int) -> list[T]:
    """The conditions in the order in which repeat ``repeat`` of the measurement under ``seed`` takes them."""
    order = stream(seed, f"order of repeat {repeat}").permutation(len(conditions))
    return [conditions[place] for place in order]
