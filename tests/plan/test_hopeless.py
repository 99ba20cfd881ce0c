"""A run is given up only when nothing could save it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from servewise.metrics.slo import parse_slo
from servewise.metrics.summary import summarise
from servewise.plan.hopeless import Hopeless
from servewise.records.columns import COMPLETED, RequestColumns, StepColumns

latencies = st.lists(st.tuples(st.floats(0.01, 3), st.floats(0.0, 5), st.integers(1, 30)), min_size=1, max_size=60)
bounds = st.sampled_from(
    ["ttft_p50<=1s", "ttft_p95<=1s", "tpot_p90<=100ms", "e2e_p99<=3s", "ttft_mean<=1s", "e2e_mean<=2s, ttft_p95<=2s"]
)


def columns(rows: list[tuple[float, float, int]]) -> RequestColumns:
    """Completed requests, all scheduled at 0, with these times to first token, to the end, and tokens."""
    found = RequestColumns()
    for serial, (first, rest, tokens) in enumerate(rows):
        found.id.append(serial)
        for column in (found.scheduled_s, found.sent_s, found.admitted_s):
            column.append(0.0)
        found.first_token_s.append(first)
        found.end_s.append(first + rest)
        found.prompt_tokens.append(1)
        found.cached_tokens.append(0)
        found.output_tokens.append(tokens)
        found.preemptions.append(0)
        found.status.append(COMPLETED)
    return found


@given(latencies, bounds, st.integers(1, 60))
def test_never_gives_up_what_would_have_held(rows: list[tuple[float, float, int]], text: str, first_look: int) -> None:
    """If the SLO holds over all requests, no look at the first of them says that it cannot."""
    slo = parse_slo(text)
    whole = columns(rows)
    if not slo.holds(summarise(whole, StepColumns(), slots=1)):
        return
    hopeless = Hopeless(slo, len(rows))

    assert not hopeless(columns(rows[:first_look]))
    assert not hopeless(whole)


def test_gives_up_as_soon_as_too_many_are_late() -> None:
    """Of 100 requests a p95 leaves 5 above the limit; type-7 interpolation needs the 6th to be sure."""
    late, hopeless = (2.0, 0.0, 1), Hopeless(parse_slo("ttft_p95<=1s"), 100)

    assert not hopeless(columns([late] * 5))
    assert hopeless(columns([late] * 6))


def test_a_mean_is_given_up_by_its_sum() -> None:
    """Ten requests may sum to ten limits: 11 s in the first are too many for a mean of 1 s."""
    hopeless = Hopeless(parse_slo("ttft_mean<=1s"), 10)

    assert not hopeless(columns([(9.9, 0.0, 1)]))
    assert hopeless(columns([(9.9, 0.0, 1), (1.1, 0.0, 1)]))
