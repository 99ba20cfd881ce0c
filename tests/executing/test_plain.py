"""Results as plain JSON and back: exactly, and nothing else than our own records."""

from __future__ import annotations

import json
import math
import struct
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import servewise
from servewise.answer import Answer
from servewise.caveats import Caveat
from servewise.executing.plain import from_plain, to_plain
from servewise.metrics.saturation import Balance
from servewise.modelspec.spec import AttentionKind
from servewise.workload.request import Request

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.sampled_from(AttentionKind),
    lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(st.text() | st.integers(), inner),
    max_leaves=20,
)


def bits(value: Any) -> Any:
    """The value with its floats as bits, so that equal means the same to the last of them."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else struct.pack("<d", value)
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, *map(bits, value)]
    if isinstance(value, dict):
        return {key: bits(each) for key, each in value.items()}
    return value


def there_and_back(value: Any) -> Any:
    """Through the text of a file."""
    return from_plain(json.loads(json.dumps(to_plain(value), allow_nan=False)))


@given(VALUES)
def test_a_value_comes_back_bit_for_bit(value: Any) -> None:
    """Nested values of every kind, infinities, NaN and minus nought among them."""
    assert bits(there_and_back(value)) == bits(value)


@given(st.binary(max_size=64), st.sampled_from(["<f8", "<i4", "|u1", ">f4", "|b1"]))
def test_arrays_come_back_as_they_were(content: bytes, dtype: str) -> None:
    """Bytes, type and shape, as NumPy's arrays, its scalars and the standard library's."""
    size = np.dtype(dtype).itemsize
    values = np.frombuffer(content[: len(content) // size * size], dtype).reshape(-1, 1)
    back = there_and_back(values)

    assert (back.tobytes(), back.dtype, back.shape) == (values.tobytes(), values.dtype, values.shape)
    assert there_and_back(array("d", [1.5, -0.0])) == array("d", [1.5, -0.0])
    assert type(there_and_back(np.float32(0.1))) is np.float32


def test_records_come_back_as_their_types() -> None:
    """A dataclass and a named tuple of ours, field by field, without their constructors being called."""
    request, caveat = Request(1, 0.1, 3, 4), Caveat("code", "message", "cure")

    assert (there_and_back(request), type(there_and_back(request))) == (request, Request)
    assert (there_and_back(caveat), type(there_and_back(caveat))) == (caveat, Caveat)


@pytest.mark.parametrize("value", [frozenset({"a", "b"}), {(1, 2), (3, 4)}, set(), frozenset()])
def test_sets_come_back(value: object) -> None:
    """A set stays a set, a frozen one frozen."""
    assert (there_and_back(value), type(there_and_back(value))) == (value, type(value))


@pytest.mark.parametrize(
    "plain",
    [
        {"record": ["os:system", {}]},
        {"record": ["servewise.atomic:replace_whole", {}]},
        {"record": ["servewise.atomic:os", {}]},
        {"record": ["servewise.__main__:main", {}]},
        {"record": ["servewise.executing.plain:Path", {}]},
        {"record": ["servewise.caveats:Caveat", {"code": "x"}]},
        {"record": ["servewise.nowhere:Nothing", {}]},
        {"named": ["builtins:eval", ["1"]]},
        {"named": ["servewise.metrics.saturation:Balance", []]},
        {"enum": ["servewise.modelspec.spec:AttentionKind", "__class__"]},
        {"enum": ["subprocess:Popen", "x"]},
        {"enum": ["servewise.atomic:os", "x"]},
        {"numpy": ["|O", [1], "AAAAAAAAAAA="]},
        {"pickle": "gASVIAAAAAAAAACMBXBvc2l4lIwGc3lzdGVtlJOUjAdlY2hvIGhplIWUUpQu"},
        {"tuple": [], "list": []},
    ],
)
def test_nothing_but_our_records_is_made(plain: dict[str, Any]) -> None:
    """A file that names another type, a function of ours, an object array or a pickle is refused: nothing runs."""
    with pytest.raises(ValueError, match=r"no |is an array"):
        from_plain(plain)


def test_what_would_not_come_back_is_not_written() -> None:
    """A function, a foreign object, an array of objects: refused when written, not when read."""
    for value in (print, object(), np.array([None]), Path("x"), Balance):
        with pytest.raises(TypeError, match="no plain form"):
            to_plain(value)


MODEL: dict[str, Any] = {"model": "llama-2-13b", "accelerator": "a100-80gb", "workload": "azure-conv", "requests": 40}
SWEEPS: dict[str, Callable[[Path], Answer]] = {
    "simulate": lambda keep: servewise.simulate(**MODEL, rate=[1, 20], slo="ttft_p95<=1s", seeds=2, keep=keep),
    "speculate": lambda keep: servewise.simulate(**MODEL, speculate="ngram", acceptance=0.5, kv_blocks=200, keep=keep),
    "conversations": lambda keep: servewise.simulate(
        "llama-3.1-8b", "l40s", workload="chat-multiturn", requests=40, seeds=1, keep=keep
    ),
    "fleet": lambda keep: servewise.fleet(
        **MODEL, autoscale="load=0.7,min=1,max=3,every=2s,start=1s", fail="r0@5s:9s", seeds=1, keep=keep
    ),
    "apart": lambda keep: servewise.fleet(**MODEL, disaggregate="1P1D", link="InfiniBand NDR", seeds=1, keep=keep),
    "plan": lambda keep: servewise.plan(
        "llama-2-13b", ["a100-80gb", "t4"], workload="azure-conv", requests=40, slo="tpot_p95<=1s", counts=1, keep=keep
    ),
}


@pytest.mark.parametrize("sweep", SWEEPS)
def test_a_kept_sweep_gives_the_same_document(sweep: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Each kind of task's result is kept whole: asked again, nothing is computed and the document is the same."""
    first = SWEEPS[sweep](tmp_path).dumps()
    assert "done before" not in caplog.text
    again = SWEEPS[sweep](tmp_path).dumps()

    done, of = caplog.text.split("servewise: ")[-1].split(" tasks were done before")[0].split(" of ")
    assert again == first
    assert done == of
