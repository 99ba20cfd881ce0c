"""A run that was kept whole, measured: what it gave when it ended, without sending a request."""

from __future__ import annotations

from pathlib import Path

from servewise.errors import InputError
from servewise.measure.bench.client_file import CLIENT, client_again
from servewise.measure.bench.condition import Condition
from servewise.measure.bench.details import load_details
from servewise.measure.bench.measured import Measured
from servewise.measure.bench.summary import window_summary
from servewise.measure.bench.tally import Tally
from servewise.measure.bench.window import closed_window, open_window
from servewise.measure.scrape.timeline import Timeline
from servewise.metrics.saturation import trend
from servewise.metrics.slo import Slo
from servewise.records.run_directory import RunRecord, read_beside, read_run

KEPT = ("salt", "prefix_cache", "options", "began_unix_s")


def kept_whole(directory: Path, condition: Condition, repeat: int, slo: Slo | None) -> Measured | None:
    """The run in ``directory``, of ``condition`` and its ``repeat``; None where it is another, or not whole."""
    try:
        record = read_run(directory)
        told = record.details
        wanted = load_details(condition, repeat) | {"ended": "whole"}
        if any(told.get(name) != value for name, value in wanted.items()):
            return None
        return _measured(directory, record, condition, repeat, slo)
    except (InputError, KeyError, TypeError, ValueError, AttributeError):  # a file of it is damaged
        return None


def _measured(directory: Path, record: RunRecord, condition: Condition, repeat: int, slo: Slo | None) -> Measured:
    """Windows and summaries are those that the same rows gave when they were measured."""
    requests, streams = record.requests, condition.streams
    window = open_window(requests) if streams is None else closed_window(requests, streams)
    return Measured(
        condition=condition,
        repeat=repeat,
        tally=Tally.again(requests, record.details),
        window=window,
        summary=window_summary(requests, window, slo),
        balance=trend(requests) if condition.is_open else None,
        sending=client_again(read_beside(directory, CLIENT), str(directory / CLIENT)),
        timeline=Timeline.of_json(record.details["server"]),
        directory=directory,
        details={name: record.details[name] for name in KEPT if name in record.details},
    )
