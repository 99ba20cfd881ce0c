"""The experiment and two builds side by side, as tables, figures and text."""

from __future__ import annotations

import io
from typing import Any

from servewise.answer import Answer
from servewise.conditions import Conditions
from servewise.report import print_answer, render_html, terminal_console
from servewise.report.figures import figures_of
from servewise.report.tables import tables_of

CONDITIONS = Conditions(hardware="1 x CPU", load="closed loop", lengths="128 in, 64 out", precision="bf16 weights")


def row(part: str, server: str, streams: int, **more: Any) -> dict[str, Any]:
    """A row of the experiment."""
    latency = {"mean": 0.1, "p50": 0.1, "p90": 0.2, "p95": 0.2, "p99": 0.3, "ci95_p50": [0.09, 0.11], "n": 40}
    return {
        "part": part,
        "server": server,
        "version": "1",
        "weights": "bf16",
        "batching": "continuous",
        "prefix_cache": False,
        "concurrency": streams,
        "completed": 40,
        "errors": 0,
        "ttft_s": latency,
        "tpot_s": latency,
        "output_tokens_per_s": 50.0 * streams,
        "cached_share": 0.8,
        "bandwidth_bytes_per_s": 6e10,
        "others_share": 0.02,
    } | more


def answer(*rows: dict[str, Any]) -> Answer:
    """The experiment's answer."""
    return Answer("experiment", CONDITIONS, {"experiment": "serve-small", "rows": list(rows)})


WHOLE = answer(
    *(row("16-bit", server, streams) for server in ("llama.cpp", "vLLM") for streams in (1, 8)),
    *(row("prefix", "vLLM", streams, prefix_cache=cached) for cached in (False, True) for streams in (1, 8)),
    row("batching", "llama.cpp", 8, batching="none", predicted={"output_tokens_per_s": 123.0, "e2e_p50_s": 2.5}),
)


def text_of(found: Answer) -> str:
    """The answer as it stands on a pipe."""
    out = io.StringIO()
    print_answer(found, terminal_console(out))
    return out.getvalue()


def test_each_part_has_its_table_within_80_columns() -> None:
    """Servers, the cache off and on with what was cached, policies with the prediction beside."""
    words = text_of(WHOLE)
    assert max(map(len, words.splitlines())) <= 80
    for each in ("llama.cpp", "vLLM", "80.0%", "none", "123"):
        assert each in words


def test_the_machines_bandwidth_stands_beside_each_row_of_the_report() -> None:
    """60 GB/s, and what others held of the cores, in the page's tables."""
    page = render_html(WHOLE, title="x")
    assert "60.0 GB/s" in page
    assert "2.0%" in page


def test_figures_show_every_server_and_stand_beside_their_tables() -> None:
    """Throughput, TTFT and TPOT by streams, and TTFT over the shared prefix."""
    titles = [table.title for table in tables_of("experiment", WHOLE.result)]
    drawn = figures_of(WHOLE)
    assert len(drawn) == 4
    assert {figure.table.title for figure in drawn if figure.table} <= set(titles)


def test_one_load_is_no_line() -> None:
    """A single number of streams gives tables alone."""
    assert figures_of(answer(row("16-bit", "vLLM", 8))) == []


def test_hostile_values_draw_and_raise_nothing() -> None:
    """Whatever a file holds in place of numbers, there is a page."""
    odd = {"ttft_s": 7, "output_tokens_per_s": "x", "bandwidth_bytes_per_s": None, "concurrency": [], "weights": 3}
    assert "<html" in render_html(answer(row("16-bit", "x", 1, **odd), {"part": "prefix"}, {}), title="x")


def test_two_builds_show_speed_and_agreement() -> None:
    """Both precisions, the agreement with its interval, and KL as a lower bound."""
    quality = {
        "prompts": 32,
        "unit": "tokens",
        "exact_share": 0.5,
        "ci95_exact_share": [0.4, 0.6],
        "step_agreement": 0.97,
        "ci95_step_agreement": [0.96, 0.98],
        "first_difference_p50": 12,
        "kl_low_nats": 0.01,
    }
    rows = [row("", "", 1, precision=each) for each in ("bf16", "q4_0")]
    words = text_of(Answer("bench-quality", CONDITIONS, {"rows": rows, "quality": quality}))
    for each in ("bf16", "q4_0", "97.0% (96.0% to 98.0%)", "50.0% (40.0% to 60.0%)", "at the least"):
        assert each in words
