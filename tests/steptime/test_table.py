"""A user's file of measured steps: read, refused with one clear line, and answered from."""

from __future__ import annotations

import contextlib
import json
import math
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.steptime.known import LLAMA_31_8B, deployed

from servewise.errors import InputError, UnknownName
from servewise.hardware.catalogue import load_accelerator
from servewise.steptime.api import calibrated_roofline, estimator_for
from servewise.steptime.shape import StepShape, add_chunk, decode_shape, prefill_shape
from servewise.steptime.table import TableEstimator
from servewise.steptime.table_file import MeasuredStep, load_table

WHERE = deployed(LLAMA_31_8B, load_accelerator("h100-sxm"))
CSV = "batch,context_tokens,step_s\n1,1000,0.010\n1,3000,0.012\n8,1000,0.016\n8,3000,0.024\n"


def written(folder: Path, text: str | bytes, name: str = "steps.csv") -> str:
    """The path of a file with that content."""
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def table(*steps: MeasuredStep) -> TableEstimator:
    """An estimator from those steps."""
    return TableEstimator(steps, calibrated_roofline(WHERE), "test")


def test_measured_steps_come_back(tmp_path: Path) -> None:
    """At the measured batches and contexts the estimator gives what was measured."""
    estimator = estimator_for(WHERE, written(tmp_path, CSV))

    for batch, context, step_s in ((1, 1000, 0.010), (1, 3000, 0.012), (8, 1000, 0.016), (8, 3000, 0.024)):
        assert estimator.seconds(decode_shape(batch, context)) == pytest.approx(step_s, rel=1e-12)
    assert estimator.name == "table (steps.csv)"


def test_between_measured_steps(tmp_path: Path) -> None:
    """Between contexts on the straight line; between batches the mean of the two, at equal KV tokens."""
    estimator = estimator_for(WHERE, written(tmp_path, CSV))
    middle = (0.012 + (10_000 - 3000) * 1e-6) * 0.5 + (0.016 + (10_000 - 8000) * 5e-7) * 0.5  # 4.5 lies midway

    assert estimator.seconds(decode_shape(1, 2000)) == pytest.approx(0.011)
    assert estimator.seconds(decode_shape(8, 2000)) == pytest.approx(0.020)
    four, five = (estimator.seconds(StepShape(n, 10_000, 0, logit_rows=n)) for n in (4, 5))
    assert (four + five) / 2 == pytest.approx(middle)


def test_steptime_output_is_a_table(tmp_path: Path) -> None:
    """What ``servewise steptime --json`` prints can be given back."""
    row = {"batch": 4, "context_tokens": 2048, "step_s": 0.02, "compute_s": 0.001, "bound": "memory"}
    answer = {"schema": "servewise.steptime/1", "result": {"rows": [row], "phase": "decode", "ridge_batch": None}}

    assert load_table(written(tmp_path, json.dumps(answer), "a.json")) == (MeasuredStep("decode", 4, 2048, 0.02),)


def test_nothing_below_the_floor() -> None:
    """A table that claims a microsecond a step is overruled by physics, and told so."""
    estimator = table(MeasuredStep("decode", 1, 1000, 1e-6))
    shape = decode_shape(1, 1000)

    assert estimator.seconds(shape) == estimator.step(shape).floor_s > 1e-3
    assert "table-not-convex" in {each.code for each in estimator.caveats}


def test_measured_prefill_scales_the_calibrated_one() -> None:
    """Prefill steps measured twice as long as calibrated make every chunk twice as long."""
    known = calibrated_roofline(WHERE)
    slow = MeasuredStep("prefill", 1, 2000, 2 * known.seconds(prefill_shape(1, 2000)))
    decode = MeasuredStep("decode", 4, 1000, 0.05)
    estimator, without = table(decode, slow), table(decode)
    alone = decode_shape(4, 1000)
    mixed = add_chunk(alone, 0, 700)

    assert estimator.seconds(prefill_shape(1, 300)) == pytest.approx(2 * known.seconds(prefill_shape(1, 300)))
    assert estimator.seconds(mixed) - 0.05 == pytest.approx(2 * (known.seconds(mixed) - known.seconds(alone)))
    assert "prefill-not-measured" in {each.code for each in without.caveats}
    assert "prefill-not-measured" not in {each.code for each in estimator.caveats}


steps = st.builds(
    MeasuredStep,
    phase=st.just("decode"),
    batch=st.integers(1, 300),
    context_tokens=st.integers(1, 50_000),
    step_s=st.floats(1e-4, 10.0),
)


@given(
    st.lists(steps, min_size=1, max_size=12, unique_by=lambda step: step[:3]),
    st.integers(1, 500),
    st.integers(1, 10**6),
)
@settings(max_examples=200, deadline=None)
def test_contract(measured: list[MeasuredStep], batch: int, context: int) -> None:
    """However wild the measurements: lines and seconds agree, nothing beats the floor, context never helps."""
    estimator = table(*sorted(measured))
    shape = decode_shape(batch, context)
    largest = max(
        line.base_s + line.per_context_token_s * shape.decode_context_tokens for line in estimator.decode_lines(batch)
    )
    mixed = add_chunk(shape, 0, 100)

    assert math.isclose(estimator.seconds(shape), largest, rel_tol=1e-12)
    assert estimator.seconds(shape) == estimator.step(shape).step_s >= estimator.step(shape).floor_s
    assert estimator.seconds(decode_shape(batch, context + 1000)) >= estimator.seconds(shape) * (1 - 1e-12)
    assert estimator.seconds(mixed) >= estimator.floor.seconds(mixed)
    assert estimator.seconds(mixed) >= estimator.seconds(shape)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no column batch"),
        ("batch,context_tokens\n1,2\n", "no column step_s"),
        ("batch,context_tokens,step_s,speed\n1,2,3,4\n", "unknown column 'speed'"),
        ("batch,context_tokens,step_s\n", "no decode step"),
        ("batch,context_tokens,step_s\n1,2,fast\n", "row 1: step_s must be a number"),
        ("batch,context_tokens,step_s\n1,2,-3\n", "step_s must be"),
        ("batch,context_tokens,step_s\n1,2,nan\n", "step_s must be"),
        ("batch,context_tokens,step_s\n1.5,2,3\n", "batch must be a whole number"),
        ("batch,context_tokens,step_s\n1,2\n", "a cell too few"),
        ("batch,context_tokens,step_s\n1,2,3,4\n", "a cell too few or too many"),
        ("batch,context_tokens,step_s\n1,2,3\n1,2,4\n", "comes twice"),
        ("batch,context_tokens,step_s,phase\n1,2,3,warm\n", "phase must be"),
        ("batch,context_tokens,step_s,phase\n1,2,3,prefill\n", "no decode step"),
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ('{"rows": 3}', "no list of rows"),
        ('{"rows": [[1]]}', "no list of rows"),
        ('{"rows": [{"batch": true, "context_tokens": 1, "step_s": 1}]}', "batch must be"),
        (b"\xff\xfe\x00", "not UTF-8"),
    ],
)
def test_bad_tables_are_refused_in_one_line(tmp_path: Path, text: str | bytes, words: str) -> None:
    """What is wrong, and where it stands."""
    with pytest.raises(InputError) as caught:
        load_table(written(tmp_path, text))

    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@given(st.one_of(st.binary(max_size=400), st.text(alphabet='batchconextokensp_,.0123456789\n"{}[]: -e', max_size=400)))
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_fuzzed_tables_never_crash(tmp_path: Path, text: str | bytes) -> None:
    """Any bytes are read or refused, never a traceback of another kind."""
    with contextlib.suppress(InputError):
        assert load_table(written(tmp_path, text))


@given(
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.floats(), st.integers(), st.text(max_size=9)),
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.dictionaries(
                st.sampled_from(["rows", "result", "phase", "batch", "context_tokens", "step_s"]), inner, max_size=6
            ),
        ),
        max_leaves=20,
    )
)
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_fuzzed_json_never_crashes(tmp_path: Path, document: object) -> None:
    """Any JSON is read or refused."""
    with contextlib.suppress(InputError):
        assert load_table(written(tmp_path, json.dumps(document)))


def test_missing_file_and_unknown_name() -> None:
    """A path that is not there is named; a word that is no estimator gets the known ones."""
    with pytest.raises(InputError, match="cannot be read"):
        estimator_for(WHERE, "nowhere/steps.csv")
    with pytest.raises(InputError, match="cannot be read"):
        estimator_for(WHERE, "a\0b.csv")
    with pytest.raises(UnknownName, match="calibrated"):
        estimator_for(WHERE, "calibratd")


def test_a_file_without_end_is_refused() -> None:
    """A device has no size to ask for: it is read up to the limit, not until memory ends."""
    with pytest.raises(InputError, match="larger than 16 MiB"):
        load_table("/dev/zero")
