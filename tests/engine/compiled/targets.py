"""The kernels under test: for this machine, and for any with AVX2, whose products are made of other instructions."""

from __future__ import annotations

from ctypes import CDLL

import pytest

from servewise.engine.compiled.library import NATIVE, Unavailable, kernels

TARGETS = (NATIVE, "x86-64-v3")


def built(target: str) -> CDLL:
    """The library for ``target``; the test is skipped where there can be none."""
    try:
        return kernels(target)
    except Unavailable as why:
        pytest.skip(str(why))
