"""A moment as a Chrome trace."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from servewise.records.chrome_trace import chrome_trace
from servewise.records.spans import Moment, Span, StepSpan

STEP = StepSpan(1.0, 1.25, 0, decodes=2, prefill_tokens=100, running=3, waiting=1, kv_tokens=40)


def slices(document: dict[str, Any], category: str = "") -> list[dict[str, Any]]:
    """Its complete events, of one category if given."""
    return [each for each in document["traceEvents"] if each["ph"] == "X" and each["cat"].startswith(category)]


def test_a_step_by_hand() -> None:
    """Seconds become microseconds, the server is the process, and the name tells what ran."""
    (found,) = slices(chrome_trace(Moment(0.0, 2.0, [], [STEP])))
    assert (found["ts"], found["dur"], found["pid"], found["tid"]) == (1e6, 250_000.0, 0, 0)
    assert found["name"] == "100 prompt tokens + 2 decoding"


spans = st.lists(
    st.builds(
        lambda serial, phase, start, length, replica: Span(serial, phase, start, start + length, replica),
        st.integers(0, 8),
        st.sampled_from(["queue", "prefill", "decode", "preempted", "transfer"]),
        st.floats(0, 100),
        st.floats(0.001, 10),
        st.integers(0, 2),
    ),
    max_size=30,
)


@given(spans=spans)
def test_what_every_trace_must_hold(spans: list[Span]) -> None:
    """It is plain JSON, every span is one slice of its server, and two requests never share a thread at one time."""
    document = json.loads(json.dumps(chrome_trace(Moment(0.0, 200.0, spans, [STEP]))))
    found = slices(document)
    assert len(found) == len(spans) + 1
    assert all(set(each) >= {"name", "ph", "ts", "dur", "pid", "tid", "args"} for each in found)
    whole: dict[tuple[int, int, int], list[float]] = {}
    for each in found[1:] if found[0]["cat"] == "step" else found:
        if each["cat"] != "step":
            times = whole.setdefault((each["pid"], each["tid"], each["args"]["request"]), [])
            times += [each["ts"], each["ts"] + each["dur"]]
    for one, its in whole.items():
        for other, others in whole.items():
            if one[:2] == other[:2] and one != other:
                assert max(its) <= min(others) + 1 or max(others) <= min(its) + 1


@given(spans=spans)
def test_threads_are_as_many_as_requests_at_once(spans: list[Span]) -> None:
    """A server has no more request threads than requests were there at one time."""
    for replica in {each.replica for each in spans}:
        mine = [each for each in spans if each.replica == replica]
        ends = {
            s: (min(e.start_s for e in mine if e.serial == s), max(e.end_s for e in mine if e.serial == s))
            for s in {e.serial for e in mine}
        }
        most = max(sum(low <= at < high for low, high in ends.values()) for at, _ in ends.values())
        threads = {each["tid"] for each in slices(chrome_trace(Moment(0.0, 200.0, mine, [])))}
        assert len(threads) <= most
