"""Numbers with units, as people write them."""

from __future__ import annotations

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from servewise.cli.quantities import BYTES_PER_S, DURATION, FLOPS_PER_S, MEMORY, PER_S, WHOLE, Several


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (MEMORY, "80GB", 80e9),
        (MEMORY, "80 gb", 80e9),
        (MEMORY, "79.25GiB", 79.25 * 2**30),
        (MEMORY, "8e10", 8e10),
        (BYTES_PER_S, "2TB/s", 2e12),
        (BYTES_PER_S, "3.35TBps", 3.35e12),
        (BYTES_PER_S, "900GB", 900e9),
        (FLOPS_PER_S, "312T", 312e12),
        (FLOPS_PER_S, "312 TFLOP/s", 312e12),
        (FLOPS_PER_S, "1.979PFLOPS", 1.979e15),
        (FLOPS_PER_S, "9.89e14", 9.89e14),
        (DURATION, "50ms", 0.05),
        (DURATION, "5min", 300.0),
        (DURATION, "20", 20.0),
        (PER_S, "0.5", 0.5),
        (PER_S, "30/min", 0.5),
        (WHOLE, "8k", 8000),
        (WHOLE, "1_024", 1024),
    ],
)
def test_units_are_read(kind: click.ParamType[float], text: str, value: float) -> None:
    """Decimal and binary prefixes, with and without per second, in either case."""
    assert kind.convert(text, None, None) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (MEMORY, "80XB"),
        (MEMORY, ""),
        (MEMORY, "GB"),
        (MEMORY, "1e999"),
        (MEMORY, "nan"),
        (MEMORY, "0x10"),
        (DURATION, "5 weeks"),
        (WHOLE, "1.5"),
        (WHOLE, "ten"),
        (Several(WHOLE), "1,,2"),
        (Several(WHOLE), "1,2,"),
        (Several(WHOLE), ""),
    ],
)
def test_what_is_no_quantity_is_refused(kind: click.ParamType[float], text: str) -> None:
    """Unknown units, empty places, infinities and NaN are one clear line."""
    with pytest.raises(click.BadParameter):
        kind.convert(text, None, None)


@given(st.text(max_size=30))
def test_any_text_is_a_number_or_a_refusal(text: str) -> None:
    """No text makes the parser fail in any other way."""
    for kind in (MEMORY, BYTES_PER_S, FLOPS_PER_S, DURATION, PER_S, WHOLE, Several(WHOLE)):
        try:
            kind.convert(text, None, None)
        except click.BadParameter:
            continue


def test_lists_keep_their_order() -> None:
    """1, 4 and 8 in that order, spaces allowed."""
    assert Several(WHOLE).convert("1, 4,8", None, None) == (1, 4, 8)
