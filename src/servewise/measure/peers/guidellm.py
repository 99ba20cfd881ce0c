"""Results of GuideLLM (``benchmarks.json``).

Format: src/guidellm/schemas of GuideLLM (Apache-2.0), versions 0.3 to 0.8, read 2026-11. Each benchmark has its
requests by status; of a request's tokens the times of the first and the last are kept (``info.timings``, or the times
that older versions work out) and in how many events they came. The first event's tokens are tokens over events.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isnan, nan
from typing import Any

from servewise.caveats import Caveat
from servewise.measure.peers.building import PeerRequest, columns_of
from servewise.measure.peers.fields import Row, inner, key_of, number, table, whole, words
from servewise.measure.peers.found import (
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

CLIENT = "GuideLLM"
ITL_UNKNOWN = Caveat(
    "peer-itl",
    "the file keeps the times of the first and the last token alone: there is no ITL, and TPOT takes every event to "
    "hold as many tokens",
    "measure with servewise bench for the gaps",
)
SAMPLED = Caveat(
    "peer-sampled",
    "the file keeps a sample of the requests: latencies are theirs, rates the client's own",
    "keep all requests (no --sample-requests)",
)


def is_guidellm(document: object) -> bool:
    """Whether a JSON value is such a result."""
    benches = document.get("benchmarks") if isinstance(document, Mapping) else None
    first = benches[0] if isinstance(benches, list) and benches else None
    return isinstance(first, Mapping) and "metrics" in first and bool({"requests", "type_", "config"} & set(first))


def read(document: Row, where: str) -> tuple[PeerRun, ...]:
    """The run in each benchmark of ``document``."""
    return tuple(
        _run(document, table(bench, f"{where}: benchmark {place}"), f"{where}: benchmark {place}")
        for place, bench in enumerate(document["benchmarks"])
    )


def _run(document: Row, bench: Row, where: str) -> PeerRun:
    requests = [
        _request(table(row, where), serial, status, where)
        for serial, (status, row) in enumerate(_by_start(inner(bench, "requests")))
    ]
    columns = columns_of(requests, where)
    streams, rate = _load(bench, where)
    good = [each for each in requests if not each.error and not each.cancelled]
    summary, caveat = _told(bench, columns if good else None, len(good), where)
    return PeerRun(
        client=CLIENT,
        conditions=conditions(
            model=_model(document, bench),
            load=load_words(streams, rate),
            lengths=lengths_words(
                _mean([each.prompt_tokens for each in good]), _mean([each.output_tokens for each in good])
            ),
        ),
        requests=columns,
        told=summary,
        concurrency=streams if rate is None else None,
        rate_per_s=rate,
        itl_known=False,
        caveats=(*common_caveats(CLIENT, streams), caveat),
    )


def _by_start(requests: Row) -> list[tuple[str, Any]]:
    by_status = {status: requests.get(status) for status in ("successful", "incomplete", "errored")}
    found = [(status, row) for status, rows in by_status.items() if isinstance(rows, list) for row in rows]
    return sorted(found, key=lambda each: _start(each[1]))


def _start(row: object) -> float:
    if not isinstance(row, Mapping):
        return 0.0
    start = inner(row, "info", "timings").get("request_start", row.get("request_start_time"))
    return key_of(start)


def _request(row: Row, serial: int, status: str, where: str) -> PeerRequest:
    place = f"{where}: request {serial}"
    timings = inner(row, "info", "timings")
    start = _first_of(number(timings, "request_start", place), number(row, "request_start_time", place))
    end = _first_of(number(timings, "request_end", place), number(row, "request_end_time", place))
    tokens, events = whole(row, "output_tokens", place), whole(timings, "token_iterations", place)
    first = _first_of(
        number(timings, "first_token_iteration", place), start + number(row, "time_to_first_token_ms", place) / 1e3
    )
    last = _first_of(
        number(timings, "last_token_iteration", place),
        first + max(tokens - 1, 0) * number(row, "inter_token_latency_ms", place) / 1e3,
    )
    known = [each for each in (first, last) if not isnan(each)]
    return PeerRequest(
        serial=serial,
        sent_s=start,
        scheduled_s=number(timings, "targeted_start", place),
        end_s=end,
        events_s=known if tokens > 1 else known[:1],
        prompt_tokens=whole(row, "prompt_tokens", place),
        output_tokens=tokens,
        cached_tokens=whole(row, "cached_tokens", place) if row.get("cached_tokens") is not None else None,
        first_tokens=max(round(tokens / events), 1) if events else 1,
        error=_error(row) if status == "errored" else "",
        cancelled=status == "incomplete",
    )


def _error(row: Row) -> str:
    return words(inner(row, "info"), "error") or words(row, "error") or "errored"


def _load(bench: Row, where: str) -> tuple[int | None, float | None]:
    """Streams and rate of the benchmark's strategy."""
    places = (("config", "strategy"), ("args", "strategy"), ("scheduler", "strategy"))
    strategy = next((found for names in places if (found := inner(bench, *names))), {})
    kind = str(strategy.get("type_", ""))
    rate = number(strategy, "rate", where)
    if kind in ("constant", "async", "poisson") and rate > 0:
        return None, rate
    if kind == "synchronous":
        return 1, None
    return whole(strategy, "streams", where) or whole(strategy, "max_concurrency", where) or None, None


def _model(document: Row, bench: Row) -> str | None:
    """The model's name alone: a configuration may hold keys."""
    places = (
        inner(bench, "config", "backend"),
        inner(document, "args", "backend_kwargs"),
        inner(document, "args"),
        inner(document, "config", "spec", "backend"),
    )
    return next((name for place in places if (name := words(place, "model"))), None)


def _told(bench: Row, columns: RequestColumns | None, kept: int, where: str) -> tuple[RunSummary | None, Caveat]:
    """The client's own summary, where the requests do not tell all."""
    metrics = inner(bench, "metrics")
    completed = whole(inner(metrics, "request_totals"), "successful", where)
    failed = whole(inner(metrics, "request_totals"), "errored", where)
    rates = {
        f"{name}_per_s": number(inner(metrics, f"{name}_per_second", "successful"), "mean", where)
        for name in ("requests", "output_tokens")
    }
    requests_per_s, tokens_per_s = rates["requests_per_s"], rates["output_tokens_per_s"]
    if columns is not None and completed <= kept:
        return None, ITL_UNKNOWN
    if columns is not None:
        found = with_rates(summarise(columns), requests_per_s=requests_per_s, output_tokens_per_s=tokens_per_s)
        return found, SAMPLED
    summary = told(
        completed=completed,
        failed=failed,
        requests_per_s=requests_per_s,
        output_tokens_per_s=tokens_per_s,
        ttft=_percentiles(metrics, "time_to_first_token_ms", 1e-3, completed, where),
        tpot=_percentiles(metrics, "inter_token_latency_ms", 1e-3, completed, where),
        e2e=_percentiles(metrics, "request_latency", 1.0, completed, where),
    )
    return summary, NO_REQUESTS


def _percentiles(metrics: Row, name: str, unit: float, completed: int, where: str) -> Percentiles:
    found = inner(metrics, name, "successful")
    said = inner(found, "percentiles")

    def at(key: str) -> float:
        return number(said, key, where) * unit

    p50 = _first_of(at("p50"), number(found, "median", where) * unit)
    return of_means(
        completed, mean=number(found, "mean", where) * unit, p50=p50, p90=at("p90"), p95=at("p95"), p99=at("p99")
    )


def _first_of(*values: float) -> float:
    return next((each for each in values if not isnan(each)), nan)


def _mean(values: list[int]) -> float:
    return sum(values) / len(values) if values else nan
