"""A measured run as plain JSON, beside its conditions and requests: ``details`` of ``run.json``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from servewise.caveats import Caveat
from servewise.measure.bench.condition import Condition
from servewise.measure.bench.measured import Measured
from servewise.measure.bench.window import Window
from servewise.measure.sending import Sending
from servewise.records.begun import to_go_on


def early_end(reason: str, folder: Path | None = None) -> Caveat:
    """The caveat of a run that ended before its time; ``folder`` holds a measurement that can go on."""
    cure = "measure it again for the whole run" if folder is None else to_go_on(folder)
    return Caveat("partial-run", f"the run ended before its time ({reason})", cure)


def load_details(condition: Condition, repeat: int) -> dict[str, Any]:
    """What is known of a run before it."""
    return {"concurrency": condition.concurrency, "rate_per_s": condition.rate_per_s, "repeat": repeat}


def run_details(found: Measured) -> dict[str, Any]:
    """What ``run.json`` holds of a measured run beside conditions and requests."""
    return {
        **found.details,
        **load_details(found.condition, found.repeat),
        "ended": found.ended,
        "window": window_json(found.window, by_end=found.condition.streams is not None),
        "client": client_json(found.sending),
        "server": found.timeline.to_json(),
        **found.tally.details(),
    }


def window_json(window: Window, *, by_end: bool) -> dict[str, Any]:
    """The window as plain JSON; ``by``: whether requests belong to it by their end or by their schedule."""
    return {
        "start_s": window.start_s,
        "end_s": window.end_s,
        "full_s": window.full_s,
        "by": "end" if by_end else "schedule",
        "cut": window.cut,
        "settled": window.settled,
        "rule": window.rule,
    }


def client_json(sending: Sending) -> dict[str, Any]:
    """How the client kept up, in a few numbers."""
    late, stalls, lag = (sorted(each) for each in (sending.lateness_s, sending.stalls_s, sending.read_lag_s))
    return {
        "workers": sending.workers,
        "cpu_s": sending.cpu_s,
        "wall_s": sending.wall_s,
        "most_open": sending.most_open,
        "lateness_p50_s": _at(late, 0.5),
        "lateness_p99_s": _at(late, 0.99),
        "lateness_most_s": late[-1] if late else 0.0,
        "stalls": len(stalls),
        "stalls_s": sum(stalls),
        "stall_most_s": stalls[-1] if stalls else 0.0,
        "read_lag_p99_s": _at(lag, 0.99),
        "notes": list(sending.notes),
        "hosts": [asdict(each) for each in sending.hosts],
    }


def _at(ranked: list[float], share: float) -> float:
    return ranked[min(int(share * len(ranked)), len(ranked) - 1)] if ranked else 0.0
