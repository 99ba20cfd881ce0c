"""Which mutants are run: all, or a sample in which each file has its share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import floor
from random import Random
from typing import TypeVar

T = TypeVar("T")


def drawn(by_file: Mapping[str, Sequence[T]], size: int | None, seed: int) -> list[T]:
    """``size`` of them (None: all), each file's part in proportion (largest remainders), drawn from ``seed``."""
    total = sum(map(len, by_file.values()))
    if size is None or size >= total:
        return [each for these in by_file.values() for each in these]
    exact = {path: size * len(these) / total for path, these in by_file.items()}
    parts = {path: floor(part) for path, part in exact.items()}
    rest = sorted(by_file, key=lambda path: (parts[path] - exact[path], path))
    for path in rest[: size - sum(parts.values())]:
        parts[path] += 1
    rng = Random(seed)
    return [each for path, these in by_file.items() for each in rng.sample(list(these), parts[path])]
