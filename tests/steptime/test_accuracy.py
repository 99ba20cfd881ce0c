"""The gate "are they right?": held-out models, published rates, and a coefficient file that its command reproduces."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from benchmarks.accuracy.fit_step_times import OUTPUT, Judged, document, rotate
from benchmarks.accuracy.layer_products import result as layer_products
from benchmarks.accuracy.step_data import Row, rows
from benchmarks.accuracy.step_times import BARS, coverage
from benchmarks.accuracy.step_times import summary as errors


@pytest.fixture(scope="module")
def measured() -> list[Row]:
    """Every usable measured step."""
    return rows()


@pytest.fixture(scope="module")
def held_out(measured: list[Row]) -> list[Judged]:
    """Each model's steps predicted by a fit on the other two."""
    return rotate(measured)


@pytest.mark.parametrize("phase", BARS)
def test_held_out_models_meet_the_bars(held_out: Sequence[Judged], phase: str) -> None:
    """Decode within 4% (median) and 12% (p90) of the kernels' measured sums, prefill and mixed within 8% and 20%."""
    found = errors([each for each in held_out if each.row.phase == phase])
    median, p90 = BARS[phase]

    assert found["median"] <= median
    assert found["p90"] <= p90


def test_intervals_cover_held_out_models(held_out: Sequence[Judged]) -> None:
    """Of the steps of a model that neither fit nor spread has seen, about 90% lie in the 90% interval."""
    assert 0.82 < coverage(held_out) < 0.97


def test_predictions_lean_to_neither_side(held_out: Sequence[Judged]) -> None:
    """In each phase the signed error is within 1% in the middle."""
    for phase in BARS:
        assert abs(errors([each for each in held_out if each.row.phase == phase])["signed_median"]) < 0.01


def test_products_timed_by_others() -> None:
    """Vidur's products, in no fit: on A100, H100 and A40 within 10% in the middle in decode, within 15% beyond."""
    for name, each in layer_products()["groups"].items():
        assert each["median"] < (0.10 if "up to" in name else 0.15), name


def test_shipped_file_is_what_its_command_writes(measured: list[Row], held_out: list[Judged]) -> None:
    """Fitting again gives the shipped coefficients, to the last digits that another machine's arithmetic may change."""
    again, shipped = document(measured, held_out), json.loads(OUTPUT.read_text("utf-8"))

    for each in (again, shipped):
        del each["fit"]["date"]
    assert_close(again, shipped)


def assert_close(one: Any, other: Any) -> None:
    """The same structure, numbers within 2%."""
    if isinstance(one, Mapping):
        assert one.keys() == other.keys()
        for name in one:
            if name != "errors":  # of coefficients that the data hardly determine
                assert_close(one[name], other[name])
    elif isinstance(one, list):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            assert_close(a, b)
    else:
        assert one == (pytest.approx(other, rel=0.02, abs=1e-9) if isinstance(one, float) else other)
