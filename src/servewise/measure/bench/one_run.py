"""One run of one condition: warm-up outside the record, then load, journal and scraping together, then its window."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from servewise.errors import InputError, RunFailed
from servewise.measure.bench.client_file import CLIENT, client_bytes
from servewise.measure.bench.condition import Condition
from servewise.measure.bench.details import early_end, load_details, run_details
from servewise.measure.bench.health import Health
from servewise.measure.bench.interrupt import Interrupt
from servewise.measure.bench.measured import Ended, Measured
from servewise.measure.bench.summary import window_summary
from servewise.measure.bench.tally import Tally
from servewise.measure.bench.window import closed_window, open_window
from servewise.measure.drive.terms import USUAL, Terms
from servewise.measure.exchange import Exchange
from servewise.measure.load.retry import RetryRule
from servewise.measure.schedule import Schedule
from servewise.measure.scrape.scraper import Scraper
from servewise.measure.scrape.timeline import Timeline
from servewise.measure.sending import Sending
from servewise.metrics.saturation import trend
from servewise.metrics.slo import Slo
from servewise.records.open_run import OpenRun
from servewise.records.run_directory import RunRecord

LEAD_S, WORKERS_LEAD_S = 0.02, 0.2  # so that the first request is not late: workers build what they send first


class Driver(Protocol):
    """Sends a schedule and tells each end; the time of ``start_s`` is the run's zero on the monotonic clock."""

    def __call__(
        self,
        schedule: Schedule,
        *,
        start_s: float,
        on_end: Callable[[Exchange], None],
        stop: Callable[[], bool] | None = None,
        terms: Terms = USUAL,
    ) -> Sending:
        """Send until the schedule is finished, ``terms`` end it, or ``stop`` says so; then wait for what is open.

        An interrupt ends it at once: what is under way is told as cancelled, then it goes on as the interrupt.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RunWanted:
    """What one run is to be.

    ``first`` are sent before, one after the other, outside the record (warm-up, prefixes to be warm). ``lead_s``: how
    long before the start those who send must have their shares beside what it takes to build them. ``record`` is the
    header of its directory (``claimed``: the caller made it, and holds its claim), ``fetch`` brings the server's
    metrics.
    """

    condition: Condition
    schedule: Schedule
    repeat: int = 0
    workers: int = 1
    lead_s: float = 0.0
    first: tuple[Schedule, ...] = ()
    terms: Terms = USUAL
    retries: RetryRule | None = None
    slo: Slo | None = None
    directory: Path | None = None
    claimed: bool = False
    record: RunRecord | None = None
    fetch: Callable[[], bytes] | None = None
    count_text: Callable[[str], int] | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


def measure(wanted: RunWanted, driver: Driver) -> Measured:
    """Run it. A run that ends before its time is kept with what it has; RunFailed where no warm-up completes."""
    for schedule in wanted.first:
        _warm(schedule, driver)
    kept = None
    if wanted.directory is not None:
        assert wanted.record is not None, "a run that is kept has a header"
        known = {**wanted.details, **load_details(wanted.condition, wanted.repeat)}
        kept = OpenRun.begin(wanted.directory, replace(wanted.record, details=known), claimed=wanted.claimed)
    try:
        return _Run(wanted, kept).go(driver)
    finally:
        if kept is not None:
            kept.close()


def _warm(schedule: Schedule, driver: Driver) -> None:
    """Send ``schedule`` outside the record."""
    tally, health = Tally(), Health(time.monotonic)

    def ended(exchange: Exchange) -> None:
        tally.add(exchange)
        health.see(exchange)

    driver(schedule, start_s=time.monotonic(), on_end=ended, stop=lambda: bool(health.reason))
    if tally.failed and not tally.completed:
        raise RunFailed(f"no warm-up request completed ({next(iter(tally.examples.values()))})")


class _Run:
    """A run under way."""

    def __init__(self, wanted: RunWanted, kept: OpenRun | None) -> None:
        self.wanted, self.kept = wanted, kept
        self.tally = Tally(wanted.count_text)
        self.health = Health(time.monotonic)
        self.interrupt = Interrupt()
        self.disk = ""
        self.interrupted = False

    def go(self, driver: Driver) -> Measured:
        """Send everything, then look at what came."""
        with Scraper(self.wanted.fetch) if self.wanted.fetch else nullcontext(None) as scraper:
            lead_s = self._prime()
            start_s, began = time.monotonic() + lead_s, time.time() + lead_s
            if scraper is not None:
                scraper.count_from(start_s)
            sending = self._send(driver, start_s)
        for exchange in self.tally.unrepeated():
            self._record(exchange)
        if not self.interrupted:
            self.health.over()
        found = self._measured(sending, scraper, began)
        if self.kept is not None and not self.disk:
            self._keep(self.kept, found)
        return found

    def _prime(self) -> float:
        """Let the schedule build ahead; how long before the start its senders must have it [s]."""
        began = time.monotonic()
        self.wanted.schedule.next_due_s()
        built_s = time.monotonic() - began
        if self.wanted.workers == 1 and not self.wanted.lead_s:
            return LEAD_S
        return LEAD_S + WORKERS_LEAD_S + self.wanted.lead_s + 2 * built_s

    def _send(self, driver: Driver, start_s: float) -> Sending:
        try:
            with self.interrupt:
                sending = driver(
                    self.wanted.schedule,
                    start_s=start_s,
                    on_end=self._ended,
                    stop=self._must_stop,
                    terms=self.wanted.terms,
                )
            self.interrupted = self.interrupt.noted  # in the last moment, when nothing was left to stop
            return sending
        except KeyboardInterrupt:
            self.interrupted = True
            return Sending(
                wall_s=time.monotonic() - start_s, notes=("interrupted: the client's own error is not known",)
            )

    def _ended(self, exchange: Exchange) -> None:
        self.health.see(exchange)
        rule = self.wanted.retries
        if rule is not None and rule.wait_s(exchange, exchange.retries) is not None:
            self.tally.add_repeated(exchange)
            return
        self._record(exchange)

    def _record(self, exchange: Exchange) -> None:
        row = self.tally.add(exchange)
        if self.kept is not None and not self.disk:
            try:
                self.kept.append(self.tally.records.columns, row)
            except InputError as error:
                self.disk = str(error)

    def _must_stop(self) -> bool:
        """Asked by the driver at every turn, where nothing is half done."""
        self.interrupt.check()
        return bool(self.disk or self.health.reason)

    def _measured(self, sending: Sending, scraper: Scraper | None, began: float) -> Measured:
        requests, condition = self.tally.records.columns, self.wanted.condition
        streams = condition.streams
        window = open_window(requests) if streams is None else closed_window(requests, streams)
        ended, reason = self._why()
        return Measured(
            condition=condition,
            repeat=self.wanted.repeat,
            tally=self.tally,
            window=window,
            summary=window_summary(requests, window, self.wanted.slo),
            balance=trend(requests) if condition.is_open else None,
            sending=sending,
            timeline=scraper.timeline if scraper else Timeline(),
            ended=ended,
            reason=reason,
            directory=self.wanted.directory,
            details=dict(self.wanted.details) | {"began_unix_s": round(began, 3)},
        )

    def _why(self) -> tuple[Ended, str]:
        if self.disk:
            return "disk", self.disk
        if self.health.reason:
            return "server", self.health.reason
        return ("interrupted", "interrupted by the user") if self.interrupted else ("whole", "")

    def _keep(self, kept: OpenRun, found: Measured) -> None:
        """The whole run in its directory, with what was seen beside the requests."""
        assert self.wanted.record is not None
        partial = () if found.ended == "whole" else (early_end(found.reason),)
        kept.finish(
            replace(
                self.wanted.record,
                requests=self.tally.records.columns,
                caveats=(*self.wanted.record.caveats, *partial),
                details=run_details(found),
            ),
            {CLIENT: client_bytes(found.sending)},
        )
