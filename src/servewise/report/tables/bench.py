"""Tables of ``bench``: what a server was measured to do, how requests ended, and how well the client kept up."""

from __future__ import annotations

from servewise.report.reading import Row, items, mapping, number, rows, text
from servewise.report.table import Column, Table, build
from servewise.report.tables.latency import latency_columns, standing, throughput_columns
from servewise.report.wording import UNKNOWN, count, figure, percent, rate, seconds

_UNSTABLE = "Red: unstable, its latencies grow with the length of the run."


def tables(result: Row) -> tuple[Table, ...]:
    """The measured runs, the search, how requests ended, what the server told, the client and the repeats."""
    found = rows(result, "rows")
    return (
        _latencies(found),
        _search(mapping(result.get("search"))),
        _outcomes(found),
        _server(found),
        _arrivals(found),
        _client(found),
        _hosts(found),
        _repeats(found),
        _gaps(rows(result, "detail")),
        _over_time(rows(result, "detail")),
    )


def _loads() -> tuple[Column, ...]:
    return (
        Column("Run", lambda row: text(row.get("run")), prose=True),
        Column("Streams", lambda row: count(row.get("concurrency"))),
        Column("Sessions", lambda row: count(row.get("sessions"))),
        Column("Rate/s", lambda row: figure(row.get("rate_per_s"))),
    )


def load_words(row: Row) -> str:
    """The row's load in words, for tables of several things a load."""
    for key, unit in (("concurrency", " streams"), ("sessions", " sessions"), ("rate_per_s", "/s")):
        value = number(row.get(key))
        if value is not None:
            return f"{figure(value)}{unit if value != 1 or unit == '/s' else unit[:-1]}"
    return UNKNOWN


def _latencies(found: list[Row]) -> Table:
    columns = (
        *_loads(),
        Column("Requests", lambda row: count(row.get("requests")), wide=True),
        Column("Errors", lambda row: count(row.get("errors"))),
        *latency_columns(),
        *throughput_columns(),
        Column("Cached tokens", lambda row: count(row.get("cached_tokens")), wide=True),
    )
    note = _UNSTABLE if any(row.get("stable") is False for row in found) else ""
    return build("Latency by load", columns, found, marks=standing, note=note)


def _search(search: Row) -> Table:
    of = "Streams" if search.get("of") == "concurrency" else "Rate/s"
    columns = (
        Column(of, lambda row: figure(row.get("level"))),
        Column("Kept by", lambda row: f"{count(row.get('kept'))} of {count(row.get('repeats'))}"),
        Column("Holds", lambda row: text(row.get("held"), UNKNOWN), prose=True),
    )
    tried = sorted(rows(search, "tries"), key=lambda row: number(row.get("level")) or 0.0)
    return build("The search", columns, tried, note=_knee(search) if tried else "")


def _knee(search: Row) -> str:
    ends = items(search.get("knee"))
    low, high = (number(end) for end in ends) if len(ends) == 2 else (None, None)
    upper = f"and {figure(high)}" if high is not None else "and beyond what was tried"
    between = f"the knee lies between {figure(low)} {upper}" if low is not None else ""
    parts = (f"Highest that holds: {figure(search.get('best'))}", between, _assumption(search))
    return "; ".join(filter(None, parts)) + "."


def _assumption(search: Row) -> str:
    assumed = text(search.get("assumes"))
    return f"taken for granted: {assumed}" if assumed else ""


def _outcomes(found: list[Row]) -> Table:
    """Only where something failed: then every outcome, so that the counts add up."""
    ended = [{"load": load_words(row), **each} for row in found for each in rows(row, "outcomes")]
    if all(row.get("outcome") == "completed" for row in ended):
        ended = []
    columns = (
        Column("Load", lambda row: text(row.get("load"))),
        Column("Ended", lambda row: text(row.get("outcome"), UNKNOWN), prose=True),
        Column("Requests", lambda row: count(row.get("count"))),
        Column("For example", lambda row: text(row.get("example")), prose=True, wide=True),
    )
    return build("How requests ended", columns, ended, grouped=True)


def _server(found: list[Row]) -> Table:
    told = [{"load": load_words(row), **mapping(row.get("server"))} for row in found]
    told = [row for row in told if mapping(row.get("running"))]
    columns = (
        Column("Load", lambda row: text(row.get("load"))),
        Column("Running", lambda row: _gauge(row, "running")),
        Column("Waiting", lambda row: _gauge(row, "waiting")),
        Column("KV use", lambda row: percent(mapping(row.get("kv_use")).get("most"))),
        Column("Preempted", lambda row: count(row.get("preemptions"))),
        Column("Prefix hits", lambda row: percent(row.get("prefix_hit_share"))),
    )
    note = "Running and waiting requests: mean (most); KV use: most." if told else ""
    return build("What the server told of itself", columns, told, note=note)


def _gauge(row: Row, key: str) -> str:
    told = mapping(row.get(key))
    return f"{figure(told.get('mean'), digits=2)} ({figure(told.get('most'))})" if told else UNKNOWN


def _arrivals(found: list[Row]) -> Table:
    told = [
        {"named_per_s": row.get("rate_per_s"), **mapping(row.get("arrivals"))}
        for row in found
        if mapping(row.get("arrivals"))
    ]
    columns = (
        Column("Arrivals", lambda row: text(row.get("process"), UNKNOWN), prose=True),
        Column("Asked/s", lambda row: rate(row.get("named_per_s"))),
        Column("Drawn/s", lambda row: rate(mapping(row.get("asked")).get("rate_per_s"))),
        Column("Sent/s", lambda row: rate(mapping(row.get("sent")).get("rate_per_s"))),
        Column("Drawn CV", lambda row: figure(mapping(row.get("asked")).get("cv"), digits=2)),
        Column("Sent CV", lambda row: figure(mapping(row.get("sent")).get("cv"), digits=2)),
        Column("Late p99", lambda row: seconds(row.get("lateness_p99_s"))),
        Column("As asked", lambda row: text(row.get("as_asked"), UNKNOWN), prose=True),
    )
    note = "Drawn: the arrivals that chance gave this run; CV: of the gaps between them." if told else ""
    return build("Arrivals asked for, drawn and sent", columns, told, note=note)


def _client(found: list[Row]) -> Table:
    told = [
        {"load": load_words(row), "window": mapping(row.get("window")), **mapping(row.get("client"))}
        for row in found
        if mapping(row.get("client"))
    ]
    columns = (
        Column("Load", lambda row: text(row.get("load"))),
        Column("Window", lambda row: seconds(mapping(row.get("window")).get("seconds"))),
        Column("Workers", lambda row: count(row.get("workers")), wide=True),
        Column("Late p99", lambda row: seconds(row.get("lateness_p99_s"))),
        Column("Stall", lambda row: seconds(row.get("stall_most_s"))),
        Column("Processor", _processor),
        Column("Stamps", lambda row: "kernel" if row.get("kernel_stamps") is True else "program", prose=True),
    )
    note = (
        "Window: the steady part, of all repeats. Late: requests left after their time. Stall: the longest."
        if told
        else ""
    )
    return build("The client's own part", columns, told, note=note)


def _hosts(found: list[Row]) -> Table:
    """Where several hosts sent, or one was lost: each one's part, and how well its clock is known."""
    told = [{"load": load_words(row), **each} for row in found for each in rows(row, "hosts")]
    if not any(row.get("offset_s") is not None or row.get("end") for row in told):
        told = []
    columns = (
        Column("Load", lambda row: text(row.get("load"))),
        Column("Host", lambda row: text(row.get("host"), UNKNOWN), prose=True),
        Column("Workers", lambda row: count(row.get("workers")), wide=True),
        Column("Requests", lambda row: count(row.get("requests"))),
        Column("Lost", lambda row: count(row.get("lost"))),
        Column("Clock", lambda row: seconds(row.get("offset_s"))),
        Column("Within", lambda row: seconds(row.get("offset_bound_s"))),
        Column("Drift", lambda row: seconds(row.get("drift_s"))),
        Column("Ended", lambda row: text(row.get("end")), prose=True, wide=True),
    )
    note = "Clock: the host's minus this one's, within half the shortest round trip. Durations are of one clock each."
    return build("The hosts that sent", columns, told, grouped=True, note=note if told else "")


def _processor(row: Row) -> str:
    used, wall, workers = (number(row.get(name)) for name in ("cpu_s", "wall_s", "workers"))
    return percent(used / (wall * workers)) if used is not None and wall and workers else UNKNOWN


def _repeats(found: list[Row]) -> Table:
    """Wide only: what each repeat gave, where there is more than one."""
    each = [{"load": load_words(row), **repeat} for row in found for repeat in rows(row, "repeats")]
    if len(each) == len(found):
        each = []
    columns = (
        Column("Load", lambda row: text(row.get("load"))),
        Column("Repeat", lambda row: count((number(row.get("repeat")) or 0) + 1)),
        Column("Completed", lambda row: count(row.get("completed"))),
        Column("Errors", lambda row: count(row.get("errors"))),
        Column("TTFT p50", lambda row: seconds(row.get("ttft_p50_s"))),
        Column("TPOT p50", lambda row: seconds(row.get("tpot_p50_s"))),
        Column("Tokens/s", lambda row: rate(row.get("output_tokens_per_s"))),
    )
    return build("Repeats", columns, each, grouped=True)


def _gaps(detail: list[Row]) -> Table:
    """Inter-token latency at a few shares of the gaps, from its curve."""
    told = [{"load": row.get("load"), "events": row.get("tokens_per_event"), **_curve(row)} for row in detail]
    columns = (
        Column("Load", lambda row: text(row.get("load"))),
        *(Column(name, lambda row, key=name: seconds(row.get(key))) for name in _SHARES),  # type: ignore[misc]
        Column("Tokens/event", lambda row: figure(row.get("events"))),
    )
    note = "Gaps between a request's events, of all repeats." if told else ""
    return build("Inter-token latency", columns, [row for row in told if "p50" in row], note=note)


_SHARES = {"p10": 0.1, "p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999, "longest": 1.0}


def _curve(row: Row) -> dict[str, object]:
    found = mapping(row.get("itl"))
    pairs = list(zip(map(number, items(found.get("share"))), items(found.get("value_s")), strict=False))
    return {
        name: value
        for name, share in _SHARES.items()
        for at, value in pairs
        if at is not None and abs(at - share) < 1e-6
    }


def _over_time(detail: list[Row]) -> Table:
    """What the timelines show, in a few numbers."""
    told = [{"load": row.get("load"), **mapping(row.get("timeline"))} for row in detail]
    columns = (
        Column("Load", lambda row: text(row.get("load"))),
        Column("Lasted", lambda row: seconds(_most(row, "time_s"))),
        Column("Steady from", lambda row: seconds((*items(row.get("window_s")), None)[0])),
        Column("to", lambda row: seconds((*items(row.get("window_s")), None, None)[1])),
        Column("Most open", lambda row: count(_most(row, "open"))),
        Column("Most tokens/s", lambda row: rate(_most(row, "output_tokens_per_s"))),
    )
    return build("Over time", columns, [row for row in told if row.get("time_s")])


def _most(row: Row, key: str) -> float | None:
    return max((found for each in items(row.get(key)) if (found := number(each)) is not None), default=None)
