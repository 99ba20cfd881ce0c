"""A run in numbers, from its records as they come: the summary and the balance that the whole records would give.

Some 110 bytes a request and 25 a step record go to disk, in order of schedule and of time; memory holds what is under
way. Everything is equal, to the last bit, to ``summarise`` and ``trend`` of the same records in memory.
"""

from __future__ import annotations

from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from servewise.errors import InputError
from servewise.metrics import latency
from servewise.metrics.goodput import attained
from servewise.metrics.percentiles import Percentiles
from servewise.metrics.phases import NAMES as PHASE_NAMES
from servewise.metrics.phases import Phases, phases
from servewise.metrics.sample import EMPTY, Estimate
from servewise.metrics.saturation import Balance
from servewise.metrics.slo import Slo
from servewise.metrics.streamed import backlog, samples
from servewise.metrics.streamed.by_schedule import BySchedule, Table
from servewise.metrics.streamed.gaps import Gaps, active_of
from servewise.metrics.streamed.rates import rate
from servewise.metrics.streamed.sums import total
from servewise.metrics.summary import TOKENS, RunSummary
from servewise.records.columns import COMPLETED, REJECTED, UNFINISHED, RequestColumns, StepColumns
from servewise.records.selection import PLAIN, lanes_of, recorded
from servewise.scratch import PIECE, Scratch

Floats = NDArray[np.float64]
LATENCIES = ("ttft", "tpot", "e2e")


class OutOfOrder(Exception):
    """The requests are not numbered in order of their schedule."""


class Digest:
    """What a recorder writes into, a part at a time, in order of ending; then ``summary`` and ``balance``.

    For open arrivals, whose requests are numbered in order of their schedule; OutOfOrder is raised for others.
    ``slots`` and ``slo`` as in ``summarise``. Its columns are in ``scratch``.
    """

    def __init__(self, scratch: Scratch, *, slots: int, slo: Slo | None = None, piece: int = PIECE) -> None:
        if slots < 1:
            raise InputError(f"utilisation needs at least one slot, not {slots}")
        self._slots, self._slo, self._piece = slots, slo, piece
        self._order, self._gaps = BySchedule(), Gaps()
        self._counts = np.zeros(UNFINISHED + 1, np.int64)
        self._sums = dict.fromkeys((*TOKENS, "preemptions"), 0)
        self._first_s, self._last_s = np.inf, -np.inf
        self._lanes = 1
        self._admitted = False
        self._scheduled_s = -np.inf  # of the last request that was taken in order
        names = (*LATENCIES, *PHASE_NAMES, "end", "scheduled", "admitted", "left", "itl", "itl_weight")
        self._columns = {name: scratch.column() for name in names}
        self._columns |= {name: scratch.column("q") for name in ("output_tokens", "active")}
        self._columns |= {"attained": scratch.column("1"), "steps": scratch.column()}

    def requests(self, requests: RequestColumns) -> None:
        """The next that ended."""
        if not len(requests):
            return
        assert requests.token_times is None, "a measured run is summarised in memory"
        self._counts += np.bincount(latency.ints(requests.status), minlength=UNFINISHED + 1)
        self._sums["preemptions"] += int(latency.ints(requests.preemptions).sum())
        self._first_s = min(self._first_s, float(latency.floats(requests.scheduled_s).min()))
        self._last_s = max(self._last_s, float(np.fmax.reduce(latency.floats(requests.end_s), initial=-np.inf)))
        names = (*PLAIN, *recorded(requests))
        self._scheduled(self._order.ready({name: _array(requests, name) for name in names}))

    def steps(self, steps: StepColumns) -> None:
        """The next steps."""
        if not len(steps):
            return
        self._lanes = max(self._lanes, lanes_of(steps))
        values, weights = self._gaps.take(steps)
        self._append("itl", values)
        self._append("itl_weight", weights)
        self._append("active", active_of(steps))
        self._append("steps", latency.ints(steps.steps).astype(np.float64))

    def balance(self) -> Balance:
        """Whether the backlog was steady or grew."""
        self._finish()
        left = self._columns["admitted" if self._admitted else "left"]
        return backlog.trend(self._columns["scheduled"], left, piece=self._piece)

    def summary(self) -> RunSummary:
        """The run in numbers."""
        self._finish()
        completed = len(self._columns["ttft"])
        used, used_ci95 = samples.weighted_mean(self._used, self._columns["steps"], piece=self._piece)
        rates = self._rates() | {"utilisation": (used, used_ci95)}
        counts = self._counts
        ttft = self._percentiles("ttft")
        return RunSummary(
            ttft=ttft,
            ttft_from_sent=ttft,
            tpot=self._percentiles("tpot"),
            itl=samples.percentiles(self._columns["itl"], self._columns["itl_weight"], piece=self._piece),
            e2e=self._percentiles("e2e"),
            utilisation=used,
            requests_per_s=rates["requests_per_s"][0],
            output_tokens_per_s=rates["output_tokens_per_s"][0],
            goodput_per_s=rates["goodput_per_s"][0] if self._slo else None,
            completed=completed,
            rejected=int(counts[REJECTED]),
            unfinished=int(counts[UNFINISHED]),
            failed=int(counts.sum() - counts[COMPLETED] - counts[REJECTED] - counts[UNFINISHED]),
            **self._sums,
            duration_s=self._duration_s,
            phases=self._phases(completed),
            ci95={name: pair for name, (_, pair) in rates.items() if pair},
        )

    @property
    def last_end_s(self) -> float:
        """When the last request ended [s]; 0 where none did."""
        return max(self._last_s, 0.0)

    @property
    def _duration_s(self) -> float:
        return self._last_s - self._first_s if np.isfinite(self._last_s) else 0.0

    def _used(self, start: int, stop: int) -> Floats:
        found: Floats = self._columns["active"].read(start, stop) / self._slots * self._lanes
        return found

    def _percentiles(self, name: str) -> Percentiles:
        column = self._columns[name]
        return samples.percentiles(column, piece=self._piece) if len(column) else EMPTY

    def _phases(self, completed: int) -> Phases | None:
        if not completed or len(self._columns["queue_s"]) != completed:
            return None
        sums = {name: total(self._columns[name], piece=self._piece) for name in PHASE_NAMES}
        return Phases(**{name: each / completed for name, each in sums.items()})

    def _rates(self) -> dict[str, Estimate]:
        ends = self._columns["end"]
        of = partial(rate, ends, self._first_s, duration_s=self._duration_s, piece=self._piece)
        found = {"requests_per_s": of(None), "output_tokens_per_s": of(self._columns["output_tokens"])}
        return found | ({} if self._slo is None else {"goodput_per_s": of(self._columns["attained"])})

    def _finish(self) -> None:
        """All requests have come: those that still waited for an earlier number too."""
        rest = self._order.rest()
        if rest and len(rest["id"]):
            self._scheduled(rest)

    def _scheduled(self, table: Table) -> None:
        """Rows in order of schedule to their columns."""
        if not len(table["id"]):
            return
        scheduled = np.concatenate(([self._scheduled_s], table["scheduled_s"]))
        if (np.diff(scheduled) < 0).any():
            raise OutOfOrder
        self._scheduled_s = float(scheduled[-1])
        real = table["status"] != REJECTED
        ends = np.where(np.isnan(table["end_s"]), np.inf, table["end_s"])[real]
        admitted = table["admitted_s"][real]
        self._admitted |= not np.isnan(admitted).all()
        self._append("scheduled", table["scheduled_s"][real])
        self._append("admitted", np.where(np.isnan(admitted), np.inf, admitted))
        self._append("left", ends)
        done = table["status"] == COMPLETED
        self._completed(_requests({name: column[done] for name, column in table.items()}))

    def _completed(self, requests: RequestColumns) -> None:
        tpot = latency.tpot(requests)
        rows: Table = {"ttft": latency.ttft(requests), "tpot": tpot[~np.isnan(tpot)], "e2e": latency.e2e(requests)}
        rows |= {"end": latency.floats(requests.end_s), "output_tokens": latency.ints(requests.output_tokens)}
        rows |= phases(requests) or {}
        if self._slo is not None:
            rows["attained"] = attained(requests, self._slo)
        for name, values in rows.items():
            self._append(name, values)
        for name in TOKENS:
            self._sums[name] += int(latency.ints(getattr(requests, name)).sum())

    def _append(self, name: str, values: NDArray[Any]) -> None:
        self._columns[name].append(values)


def _array(requests: RequestColumns, name: str) -> NDArray[Any]:
    column = getattr(requests, name)
    return np.frombuffer(column, column.typecode)


def _requests(table: Table) -> RequestColumns:
    """Arrays of NumPy serve where the metrics only read."""
    return RequestColumns(**cast("Any", table))
