"""Results as files: our own answers and runs, and those of other clients."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from servewise.check.finding import Finding, Place, Severity, found
from servewise.errors import ServewiseError
from servewise.measure.peers.found import NOT_STATED, PeerRun
from servewise.measure.peers.load import runs_in

FOUR = ("hardware", "load", "lengths", "precision")
UNSAID = ("", "unknown", "?", "n/a", "none", NOT_STATED)
PERCENTILES = {"p90": 0.9, "p95": 0.95, "p99": 0.99}
LATENCIES = ("ttft_s", "tpot_s", "itl_s", "e2e_s")
BEYOND = 5  # requests that should lie beyond a percentile
FIRST = Place(1, 1)


def check_results(documents: tuple[Mapping[str, Any], ...]) -> list[Finding]:
    """Every finding in result documents; none where they are nobody's."""
    ours = [each for each in documents if str(each.get("schema", "")).startswith("servewise.")]
    if ours:
        return [finding for each in ours for finding in _own(each)]
    try:
        runs = runs_in(list(documents), "the file")
    except (ServewiseError, ValueError, TypeError, KeyError, OverflowError):
        return []
    return [finding for run in runs for finding in _peer(run, len(runs))]


def _own(document: Mapping[str, Any]) -> Iterator[Finding]:
    conditions = document.get("conditions")
    yield from _conditions(conditions if isinstance(conditions, Mapping) else {})
    for each in _tables(document.get("caveats")):
        message, cure = str(each.get("message", "")), str(each.get("cure", ""))
        yield found("carried-caveat", FIRST.called(str(each.get("code", ""))), message, cure=cure)
    result = document.get("result")
    for row in _tables(result.get("rows")) if isinstance(result, Mapping) else ():
        yield from _row(row)


def _row(row: Mapping[str, Any]) -> Iterator[Finding]:
    errors = row.get("errors")
    failed = (
        sum(value for value in errors.values() if isinstance(value, int)) if isinstance(errors, Mapping) else errors
    )
    if isinstance(failed, int) and failed > 0:
        yield found("failed-requests", FIRST.called("errors"), f"{failed:,} requests failed.", failed=failed)
    for name in LATENCIES:
        table = row.get(name)
        if isinstance(table, Mapping) and isinstance(table.get("n"), int) and name != "itl_s":
            yield from _percentiles(name, table["n"], [key for key in PERCENTILES if table.get(key) is not None])


def _percentiles(name: str, requests: int, given: list[str]) -> Iterator[Finding]:
    """The lowest given percentile that has under one request beyond it; one with under five is a note."""
    for key in given:
        beyond = requests * (1 - PERCENTILES[key])
        if beyond < BEYOND and requests:
            needed = round(BEYOND / (1 - PERCENTILES[key]))
            why = f"{name} {key} of {requests:,} requests: {beyond:.2g} lie beyond it; {needed:,} requests are needed."
            severity: Severity = "warning" if beyond < 1 else "note"
            yield found(
                "too-few-for-percentile", FIRST.called(f"{name}.{key}"), why, severity=severity, requests=requests
            )
            return


def _conditions(stated: Mapping[str, Any]) -> Iterator[Finding]:
    lacking = [name for name in FOUR if str(stated.get(name) or "").strip().lower() in UNSAID]
    if lacking:
        why = f"The result does not say {', '.join(lacking)}."
        severity: Severity = "warning" if len(lacking) > 1 or "hardware" in lacking else "note"
        cure = f"State {', '.join(lacking)} beside it (servewise bench --hardware --precision)."
        yield found("latency-without-conditions", FIRST, why, cure=cure, severity=severity, missing=lacking)


def _peer(run: PeerRun, runs: int) -> Iterator[Finding]:
    yield from _conditions({name: getattr(run.conditions, name) for name in FOUR})
    summary = run.told
    requests = summary.completed if summary is not None else len(run.requests)
    failed = summary.failed if summary is not None else 0
    if failed:
        yield found("failed-requests", FIRST, f"{failed:,} of {failed + requests:,} requests failed.", failed=failed)
    yield from _percentiles("ttft_s", requests, ["p99"])
    if run.conditions.load == "all at once" and requests > 1:
        yield found(
            "all-at-once", FIRST, f"{requests:,} requests came at once: TTFT is the queue's.", requests=requests
        )
    if runs == 1:
        yield found("one-run", FIRST)


def _tables(value: Any) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []
