"""Results of AIPerf: ``profile_export.jsonl`` (its requests) and ``profile_export_aiperf.json`` (its summary).

Format: docs/tutorials/working-with-profile-exports.md of AIPerf (Apache-2.0), versions 0.2 to 0.13, read 2026-11. A
record has its start and end in epoch nanoseconds, TTFT and ``inter_chunk_latency`` (gaps between its events) in
milliseconds. AIPerf's ``inter_token_latency`` is (latency - TTFT) / (tokens - 1), a TPOT that ends with the stream.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate

from servewise.measure.peers.building import PeerRequest, columns_of
from servewise.measure.peers.fields import Row, as_number, inner, key_of, number, table, whole, words
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
)
from servewise.metrics.percentiles import Percentiles
from servewise.records.columns import RequestColumns

CLIENT = "AIPerf"
UNITS = {"ms": 1e-3, "s": 1.0, "sec": 1.0, "us": 1e-6, "ns": 1e-9}
DEEPEST = 4
MOST_TOKENS = 1e9  # of one request


def is_record(line: object) -> bool:
    """Whether a JSON value is a line of ``profile_export.jsonl``."""
    return isinstance(line, Mapping) and isinstance(line.get("metadata"), Mapping) and "metrics" in line


def is_summary(document: object) -> bool:
    """Whether a JSON value is ``profile_export_aiperf.json``."""
    return (
        isinstance(document, Mapping)
        and isinstance(document.get("request_latency"), Mapping)
        and ("aiperf_version" in document or "input_config" in document or "request_count" in document)
    )


def read_records(lines: Sequence[Row], where: str) -> tuple[PeerRun, ...]:
    """The run in the lines of ``profile_export.jsonl``, without its warm-up."""
    kept = [line for line in lines if inner(line, "metadata").get("benchmark_phase", "profiling") == "profiling"]
    order = sorted(range(len(kept)), key=lambda place: _turn(kept[place], place))
    requests = [_request(kept[place], serial, f"{where}: request {place}") for serial, place in enumerate(order)]
    columns = columns_of(requests, where)
    good = [each for each in requests if not each.error and not each.cancelled]
    lengths = lengths_words(
        *(_mean([getattr(each, key) for each in good]) for key in ("prompt_tokens", "output_tokens"))
    )
    most = _most_open(requests)
    return (
        PeerRun(
            client=CLIENT,
            conditions=conditions(model=None, load=f"at most {most} at once", lengths=lengths),
            requests=columns,
            concurrency=most,
            caveats=(*common_caveats(CLIENT, most), ITL_PER_EVENT),
        ),
    )


def read_summary(document: Row, where: str) -> tuple[PeerRun, ...]:
    """The run that ``profile_export_aiperf.json`` sums up."""
    completed = _count(document, "request_count", where)
    streams = _setting(document, "concurrency")
    rate = _setting(document, "request_rate")
    lengths = [_stat(document, f"{name}_sequence_length", "avg", where) for name in ("input", "output")]
    summary = told(
        completed=completed,
        failed=_count(document, "error_request_count", where),
        duration_s=_stat(document, "benchmark_duration", "avg", where),
        requests_per_s=_stat(document, "request_throughput", "avg", where),
        output_tokens_per_s=_stat(document, "output_token_throughput", "avg", where),
        prompt_tokens=_total(lengths[0], completed),
        output_tokens=_total(lengths[1], completed),
        ttft=_percentiles(document, "time_to_first_token", completed, where),
        tpot=_percentiles(document, "inter_token_latency", completed, where),
        itl=_percentiles(document, "inter_chunk_latency", completed, where),
        e2e=_percentiles(document, "request_latency", completed, where),
    )
    concurrency = int(streams) if streams else None
    return (
        PeerRun(
            client=CLIENT,
            conditions=conditions(
                model=_model(document), load=load_words(concurrency, rate), lengths=lengths_words(*lengths)
            ),
            requests=RequestColumns(),
            told=summary,
            concurrency=concurrency if rate is None else None,
            rate_per_s=rate,
            caveats=(*common_caveats(CLIENT, concurrency), NO_REQUESTS),
        ),
    )


def _turn(line: Row, place: int) -> tuple[float, float, int]:
    about = inner(line, "metadata")
    return key_of(about.get("session_num")), key_of(about.get("turn_index")), place


def _request(line: Row, serial: int, where: str) -> PeerRequest:
    about, metrics = inner(line, "metadata"), inner(line, "metrics")
    start, end = (number(about, f"request_{name}_ns", where) / 1e9 for name in ("start", "end"))
    due = number(about, "credit_issued_ns", where) / 1e9
    failed = line.get("error") is not None
    first = _value(metrics, "time_to_first_token", where)
    gaps = _gaps(metrics, where)
    events = [] if failed or math.isnan(first) else list(accumulate(gaps, initial=start + first))
    tokens = _value(metrics, "output_sequence_length", where)
    prompt = _value(metrics, "input_sequence_length", where)
    error = inner(line, "error")
    return PeerRequest(
        serial=serial,
        sent_s=start,
        scheduled_s=due if due <= start else start,
        end_s=end,
        events_s=events,
        prompt_tokens=_tokens(prompt, 0),
        output_tokens=_tokens(tokens, len(events)),
        error=(words(error, "message") or words(error, "type") or "failed") if failed else "",
        cancelled=about.get("was_cancelled") is True,
    )


def _value(metrics: Row, name: str, where: str) -> float:
    """A metric of one request in SI; NaN where it is not there."""
    found = metrics.get(name)
    if isinstance(found, Mapping):
        return number(found, "value", f"{where}: {name}") * UNITS.get(str(found.get("unit")), 1.0)
    return as_number(found, f"{where}: {name}") if found is not None else math.nan


def _tokens(value: float, unknown: int) -> int:
    return int(value) if 0 <= value < MOST_TOKENS else unknown


def _gaps(metrics: Row, where: str) -> list[float]:
    found = table(metrics.get("inter_chunk_latency") or {}, f"{where}: inter_chunk_latency")
    values = found.get("value") or []
    unit = UNITS.get(str(found.get("unit", "ms")), 1e-3)
    if not isinstance(values, list):
        values = [values]
    return [as_number(each, f"{where}: inter_chunk_latency") * unit for each in values]


def _most_open(requests: Sequence[PeerRequest]) -> int:
    """The most requests that were open at one time."""
    known = [each for each in requests if each.end_s >= each.sent_s]
    changes = sorted([(each.end_s, -1) for each in known] + [(each.sent_s, 1) for each in known])
    return max(accumulate((change for _, change in changes), initial=0))


def _stat(document: Row, name: str, key: str, where: str) -> float:
    return number(inner(document, name), key, f"{where}: {name}")


def _count(document: Row, name: str, where: str) -> int:
    return whole(inner(document, name), "avg", f"{where}: {name}")


def _percentiles(document: Row, name: str, completed: int, where: str) -> Percentiles:
    unit = UNITS.get(str(inner(document, name).get("unit", "ms")), 1e-3)

    def at(key: str) -> float:
        return _stat(document, name, key, where) * unit

    return of_means(completed, mean=at("avg"), p50=at("p50"), p90=at("p90"), p95=at("p95"), p99=at("p99"))


def _setting(document: Row, name: str) -> float | None:
    """A setting of the load, wherever this version's configuration has it."""
    found = next((each for each in _settings(document.get("input_config"), name, DEEPEST)), None)
    value = key_of(found)
    return value if value > 0 else None


def _settings(config: object, name: str, deep: int) -> Iterator[object]:
    if not isinstance(config, Mapping) or deep == 0:
        return
    if config.get(name) is not None:
        yield config[name]
    for each in config.values():
        yield from _settings(each, name, deep - 1)


def _model(document: Row) -> str | None:
    names = inner(document, "input_config", "endpoint").get("model_names")
    first = names[0] if isinstance(names, list) and names else names
    return words({"name": first}, "name")


def _total(mean: float, count: int) -> int:
    return 0 if math.isnan(mean) else round(mean * count)


def _mean(values: list[int]) -> float:
    return sum(values) / len(values) if values else math.nan
