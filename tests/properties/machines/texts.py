"""Texts that share beginnings, as chained names of their parts: a name says all that stands before it."""

from __future__ import annotations

from hypothesis import strategies as st

WORDS = 3  # how many texts may follow a part: few, so that they meet


def chained(path: tuple[int, ...]) -> tuple[int, ...]:
    """The names along ``path``: each is made of the whole path up to it."""
    names, before = [], 0
    for word in path:
        before = before * (WORDS + 1) + word + 1
        names.append(before)
    return tuple(names)


paths = st.lists(st.integers(0, WORDS - 1), max_size=5).map(tuple).map(chained)
