"""Parquet columns: what is missing or of another type is named."""

from __future__ import annotations

import io

import arro3.core as arrow
import arro3.io
import numpy as np
import pytest
from tests.records import made

from servewise.errors import InputError
from servewise.records import tables
from servewise.records.columns import StepColumns


def parquet(columns: dict[str, object]) -> bytes:
    """``columns`` as Parquet bytes."""
    buffer = io.BytesIO()
    arro3.io.write_parquet(arrow.Table.from_pydict(columns), buffer)  # type: ignore[arg-type]
    return buffer.getvalue()


def test_missing_columns_are_named() -> None:
    """A table of one column lacks all the others, by name."""
    data = parquet({"id": arrow.Array.from_numpy(np.arange(3))})
    with pytest.raises(InputError, match=r"t: lacks the columns .*prompt_tokens.*status, error"):
        tables.requests_from_parquet(data, "t")
    with pytest.raises(InputError, match="seconds"):
        tables.steps_from_parquet(data, "t")


def test_a_column_of_another_type_is_named() -> None:
    """Steps counted in floats, or with nulls, are refused."""
    names = (*tables.STEP_FLOATS, *tables.STEP_INTS)
    floats = {name: arrow.Array.from_numpy(np.zeros(2)) for name in names}
    with pytest.raises(InputError, match="column steps must hold 64-bit whole numbers"):
        tables.steps_from_parquet(parquet(dict(floats)), "t")
    holes = floats | {"seconds": arrow.Array([1.0, None], arrow.DataType.float64())}
    with pytest.raises(InputError, match=r"column seconds .*nulls"):
        tables.steps_from_parquet(parquet(dict(holes)), "t")


def test_an_unknown_status_is_named() -> None:
    """A status that this version does not know is refused, not guessed."""
    with pytest.raises(InputError, match="unknown status 'lost'"):
        tables._statuses(["completed", "lost"], "t")


def test_active_is_optional_in_steps() -> None:
    """Steps without ``active`` are written and read without it."""
    steps = made.steps()
    steps.active = StepColumns().active
    assert len(tables.steps_from_parquet(tables.steps_to_parquet(steps), "t").active) == 0
