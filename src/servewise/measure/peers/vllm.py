"""Results of ``vllm bench serve --save-result``, with ``--save-detailed`` or without.

Format: vllm/benchmarks/serve.py of vLLM (Apache-2.0), read 2026-11. Detailed files have, by request, ``start_times``
(since 0.11), ``ttfts``, ``itls`` (gaps between its events), ``input_lens``, ``output_lens``, ``errors`` and in newer
versions ``latencies`` and ``queue_times``, all in seconds on one monotonic clock. ``--append-result`` puts one such
object on each line. The client's own TPOT is (end - first) / (tokens - 1); here it is made anew of the requests.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate

from servewise.caveats import Caveat
from servewise.errors import InputError
from servewise.measure.peers.building import PeerRequest, columns_of
from servewise.measure.peers.fields import Row, as_number, listed, number, whole, words
from servewise.measure.peers.found import (
    ITL_PER_EVENT,
    NO_REQUESTS,
    PeerRun,
    common_caveats,
    conditions,
    lengths_words,
    load_words,
    of_means,
    told,
    with_rates,
)
from servewise.metrics.percentiles import Percentiles
from servewise.metrics.summary import RunSummary, summarise
from servewise.records.columns import RequestColumns

CLIENT = "vLLM bench serve"
KEYS = ("request_throughput", "total_output_tokens", "completed", "duration")
LATENCIES = {"ttft": "ttft", "tpot": "tpot", "itl": "itl", "e2e": "e2el"}
DETAIL = ("ttfts", "itls", "input_lens", "output_lens")


def is_vllm(document: object) -> bool:
    """Whether a JSON value is such a result."""
    return isinstance(document, dict) and all(key in document for key in KEYS)


def read(documents: Sequence[Row], where: str) -> tuple[PeerRun, ...]:
    """The run in each of ``documents``."""
    return tuple(_run(document, where) for document in documents)


def _run(document: Row, where: str) -> PeerRun:
    streams = whole(document, "max_concurrency", where) or None
    rate = None if document.get("request_rate") in (None, "inf") else number(document, "request_rate", where)
    completed = whole(document, "completed", where)
    means = [
        whole(document, name, where) / completed if completed else math.nan
        for name in ("total_input_tokens", "total_output_tokens")
    ]
    requests, summary, own = _requests(document, where)
    return PeerRun(
        client=CLIENT,
        conditions=conditions(
            model=words(document, "model_id"),
            load=load_words(streams, rate),
            lengths=lengths_words(*means),
            hardware=words(document, "hardware"),
            precision=words(document, "precision"),
        ),
        requests=requests,
        told=summary,
        concurrency=streams if rate is None else None,
        rate_per_s=rate,
        caveats=(*common_caveats(CLIENT, streams), own),
    )


def _requests(document: Row, where: str) -> tuple[RequestColumns, RunSummary | None, Caveat]:
    """Its requests, its summary where they do not tell all, and what that means."""
    if any(name not in document for name in DETAIL):
        return RequestColumns(), _summary(document, where), NO_REQUESTS
    rows = _detailed(document, where)
    requests = columns_of(rows, where)
    if "start_times" in document:
        return requests, None, ITL_PER_EVENT
    rates = {
        "requests_per_s": number(document, "request_throughput", where),
        "output_tokens_per_s": number(document, "output_throughput", where),
    }
    return requests, with_rates(summarise(requests), **rates), ITL_PER_EVENT


def _detailed(document: Row, where: str) -> list[PeerRequest]:
    columns = {name: listed(document, name, where) for name in DETAIL}
    optional = ("start_times", "latencies", "queue_times", "errors")
    columns |= {name: listed(document, name, where) for name in optional if name in document}
    counts = {name: len(column) for name, column in columns.items()}
    if len(set(counts.values())) > 1:
        said = ", ".join(f"{name} {count:,}" for name, count in counts.items())
        raise InputError(f"its lists are of different lengths ({said})", where=where)
    return [
        _request(serial, {name: column[serial] for name, column in columns.items()}, f"{where}: request {serial}")
        for serial in range(counts["ttfts"])
    ]


def _request(serial: int, row: Row, where: str) -> PeerRequest:
    start = 0.0 if row.get("start_times") is None else as_number(row["start_times"], where)
    first, gaps = number(row, "ttfts", where), listed(row, "itls", where)
    tokens = whole(row, "output_lens", where)
    error = words(row, "errors") or ""
    answered = not error and tokens > 0
    events = list(accumulate((as_number(gap, where) for gap in gaps), initial=start + first)) if answered else []
    latency, queued = number(row, "latencies", where), number(row, "queue_times", where)
    end = start + latency if latency > 0 else (events[-1] if events else math.nan)
    return PeerRequest(
        serial=serial,
        sent_s=start,
        scheduled_s=start - queued if queued > 0 else start,
        end_s=end,
        events_s=events,
        prompt_tokens=whole(row, "input_lens", where),
        output_tokens=tokens,
        error=error,
    )


def _summary(document: Row, where: str) -> RunSummary:
    completed = whole(document, "completed", where)
    failed = whole(document, "failed", where) or max(whole(document, "num_prompts", where) - completed, 0)
    latencies = {ours: _percentiles(document, theirs, completed, where) for ours, theirs in LATENCIES.items()}
    return told(
        completed=completed,
        failed=failed,
        duration_s=number(document, "duration", where),
        requests_per_s=number(document, "request_throughput", where),
        output_tokens_per_s=number(document, "output_throughput", where),
        prompt_tokens=whole(document, "total_input_tokens", where),
        output_tokens=whole(document, "total_output_tokens", where),
        ttft=latencies["ttft"],
        tpot=latencies["tpot"],
        itl=latencies["itl"],
        e2e=latencies["e2e"],
    )


def _percentiles(document: Row, name: str, completed: int, where: str) -> Percentiles:
    def said(at: str) -> float:
        return number(document, f"{at}_{name}_ms", where) / 1e3

    return of_means(completed, mean=said("mean"), p50=said("median"), p90=said("p90"), p95=said("p95"), p99=said("p99"))
