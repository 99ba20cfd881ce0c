"""Timelines: means and growth over the window asked for, bounded for a run of any length."""

from __future__ import annotations

import json

from servewise.measure.scrape.timeline import MOST_SAMPLES, Timeline


def test_a_summary_is_of_its_window_alone() -> None:
    """Gauges at their mean and most, counters by what they grew, from the samples inside; hits over queries."""
    found = Timeline(engine="vllm")
    for second, (running, queries, hits) in enumerate(
        [(9, 0, 0), (2, 100, 0), (4, 200, 50), (6, 300, 100), (9, 9e9, 0)]
    ):
        found.add(second, {"running": running, "prefix_queries_tokens": queries, "prefix_hits_tokens": hits})
    summary = found.summary(1.0, 3.5)

    assert summary["running"] == {"mean": 4, "most": 6}
    assert summary["prefix_queries_tokens"] == 200
    assert summary["prefix_hit_share"] == 0.5
    assert summary["samples"] == 3
    assert "kv_use" not in summary


def test_a_counter_that_fell_begins_anew() -> None:
    """A server that was started again in mid-run counts from 0: growth is 5 before and 3 after, never below zero."""
    found = Timeline()
    for second, value in enumerate([10, 15, 0, 3]):
        found.add(second, {"preemptions": value})

    assert found.summary(0, 9)["preemptions"] == 8


def test_a_day_of_samples_stays_bounded_and_in_order() -> None:
    """86,400 samples keep fewer than the most allowed, evenly spread from beginning to end."""
    found = Timeline(engine="vllm")
    for second in range(86_400):
        found.add(second, {"running": second})

    assert MOST_SAMPLES // 2 <= len(found.time_s) <= MOST_SAMPLES
    assert found.time_s[-1] > 86_400 - 2 * found.stride
    gaps = {b - a for a, b in zip(found.time_s, found.time_s[1:], strict=False)}
    assert gaps == {found.stride}
    assert found.columns["running"] == found.time_s


def test_a_timeline_is_plain_json_without_what_was_never_told() -> None:
    """NaN becomes null, a column without a value is left out."""
    found = Timeline(engine="tgi")
    found.add(0.5, {"running": 1})
    found.add(1.5, {})

    assert json.loads(json.dumps(found.to_json(), allow_nan=False)) == {
        "engine": "tgi",
        "failures": 0,
        "time_s": [0.5, 1.5],
        "running": [1, None],
    }
