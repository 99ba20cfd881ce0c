"""The bench answer on a terminal and as tables: what was measured, and what was doubtful, in 80 columns."""

from __future__ import annotations

import io
from typing import Any

from servewise.answer import Answer
from servewise.conditions import Conditions
from servewise.report import print_answer, terminal_console
from servewise.report.headline import headline
from servewise.report.tables.bench import tables

LATENCY = {"mean": 0.2, "p50": 0.2, "p90": 0.3, "p95": 0.4, "p99": 0.5, "ci95_p50": [0.1, 0.3], "n": 40}
ROW: dict[str, Any] = {
    "concurrency": 8,
    "rate_per_s": None,
    "requests": 100,
    "errors": 3,
    "ttft_s": LATENCY,
    "tpot_s": LATENCY,
    "output_tokens_per_s": 400.0,
    "outcomes": [
        {"outcome": "completed", "count": 97},
        {"outcome": "reset", "count": 3, "example": "reset: inside the answer"},
    ],
    "server": {"running": {"mean": 7.5, "most": 8}, "waiting": {"mean": 0.5, "most": 2}, "preemptions": 4},
    "client": {"cpu_s": 2.0, "wall_s": 10.0, "workers": 2, "lateness_p99_s": 0.001, "kernel_stamps": True},
    "window": {"seconds": 28.5},
    "repeats": [{"repeat": 0, "completed": 50}, {"repeat": 1, "completed": 47}],
}
SEARCH = {
    "of": "concurrency",
    "best": 8,
    "knee": [8, 9],
    "tries": [
        {"level": 9, "kept": 0, "repeats": 2, "held": False},
        {"level": 8, "kept": 2, "repeats": 2, "held": True},
    ],
}
CONDITIONS = Conditions(model="m", hardware="1 x L4", precision="bf16", load="8 streams", lengths="512 in, 128 out")


def printed(**result: Any) -> str:
    """The answer as it stands on a pipe."""
    out = io.StringIO()
    print_answer(Answer("bench", CONDITIONS, {"rows": [ROW], "run_dir": None} | result), terminal_console(out))
    return out.getvalue()


def test_every_figure_of_a_measurement_fits_80_columns() -> None:
    """Latencies, outcomes, server, client and repeats, none cut off."""
    words = printed(search=SEARCH)

    assert max(map(len, words.splitlines())) <= 80
    for each in ("8 streams", "reset", "97", "7.5 (8)", "28.5 s", "10.0%", "kernel"):
        assert each in words


HOST = {"host": "b1", "workers": 1, "requests": 50, "completed": 47, "lost": 0, "end": "", "clock_bound_s": 0.0004}
CLOCK = {"offset_s": 12.5, "offset_bound_s": 0.0004, "drift_s": -0.00002, "drift_bound_s": 0.0008, "pings": 16}


def test_hosts_are_told_where_their_clocks_are_not_one() -> None:
    """Offset, its bound and drift of each host in 80 columns; nothing where all processes are of this machine."""
    here = HOST | dict.fromkeys(CLOCK) | {"host": "this machine"}
    words = printed(rows=[ROW | {"hosts": [HOST | CLOCK, HOST | CLOCK | {"host": "b2", "lost": 3, "end": "gone"}]}])
    alone = printed(rows=[ROW | {"hosts": [here]}])

    assert max(map(len, words.splitlines())) <= 80
    for each in ("b1", "b2", "12.5 s", "400 µs", "-20.0 µs"):
        assert each in words
    assert "The hosts that sent" not in alone


def test_outcomes_stand_there_only_where_something_failed() -> None:
    """All completed: no table of outcomes; else all of them, so that the counts add up to the requests."""
    fine = ROW | {"outcomes": [{"outcome": "completed", "count": 100}]}

    assert "How requests ended" in [each.title for each in tables({"rows": [ROW]}) if each.cells]
    assert "How requests ended" not in [each.title for each in tables({"rows": [fine]}) if each.cells]


def test_a_search_leads_with_its_knee() -> None:
    """The highest level that holds and the interval of the knee, in the first line; none where nothing holds."""
    found = headline(Answer("bench", CONDITIONS, {"rows": [ROW], "search": SEARCH}))
    none = headline(Answer("bench", CONDITIONS, {"rows": [ROW], "search": SEARCH | {"best": 0, "knee": [0, 1]}}))

    assert found is not None
    assert (found.text, found.detail) == ("8 streams keep the SLO.", "The knee lies between 8 and 9 streams.")
    assert none is not None
    assert not none.good


def test_a_document_of_anything_is_no_traceback() -> None:
    """Wrong kinds under every key are passed over, as a file may hold anything."""
    for wrong in (None, 3, "x", [1], {"a": 1}):
        row = dict.fromkeys(ROW, wrong)
        words = printed(rows=[row, wrong], search=wrong)

        assert "m on 1 x L4" in words
