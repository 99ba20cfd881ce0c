"""Runs as they lie on disk, ours or another client's, one or many: each with the part that counts, in numbers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np

from servewise.caveats import Caveat, unique
from servewise.conditions import Conditions
from servewise.errors import InputError
from servewise.measure.bench.summary import window_summary
from servewise.measure.bench.window import Window, closed_window, open_window
from servewise.measure.peers.found import PeerRun
from servewise.measure.peers.load import read_results
from servewise.metrics import latency
from servewise.metrics.pairing import Part, whole
from servewise.metrics.sample import EMPTY
from servewise.metrics.slo import Slo
from servewise.metrics.streamed.digest import Digest, OutOfOrder
from servewise.metrics.summary import RunSummary, pool, summarise
from servewise.records.begun import CUT, read_begun
from servewise.records.columns import COMPLETED, FAILED, StepColumns
from servewise.records.parts import parts_of
from servewise.records.run_directory import CUT_OFF, HEADER, MAX_HEADER_BYTES, RunRecord, read_about, read_run
from servewise.scratch import Scratch

ANSWER = "bench.json"
DEEPEST = 3  # folders of folders of runs
MOST_RUNS = 2_000
LONG_BYTES = 2**24  # of row files: some 150,000 requests
MOST = 1e18  # beyond any load or time


@dataclass(frozen=True)
class OneRun:
    """A run and the part of it that counts: a measured one's steady window, all of a simulated one.

    ``told`` is its summary where its maker kept no requests, or where they are too many to be read at once.
    """

    name: str
    record: RunRecord
    told: RunSummary | None = None

    @cached_property
    def window(self) -> Window | None:
        """The steady window of a measured run, as it was found when it was measured; None where all counts."""
        if self.record.kind != "measured":
            return None
        return _told_window(self.record) or _found_window(self.record)

    @property
    def is_cut(self) -> bool:
        """Whether it never came to its end."""
        return any(each.code == CUT_OFF for each in self.record.caveats)

    @property
    def part(self) -> Part:
        """What counts."""
        window = self.window
        if window is None:
            return whole(self.record.requests)
        return Part(self.record.requests, window.rows, window.start_s, window.end_s)

    def count(self, status: int) -> int:
        """How many requests of the whole run ended with ``status``."""
        if self.told is not None:
            return {COMPLETED: self.told.completed, FAILED: self.told.failed}.get(status, 0)
        return self.record.requests.status.count(status)

    def summary(self, slo: Slo | None) -> RunSummary:
        """The run in numbers."""
        if self.told is not None:
            return self.told
        found = self._summary(slo)
        return found if self.record.details.get("itl_known", True) else replace(found, itl=EMPTY)

    def _summary(self, slo: Slo | None) -> RunSummary:
        if self.window is not None:
            return window_summary(self.record.requests, self.window, slo)
        return summarise(self.record.requests, self.record.steps, slots=self.record.slots or 1, slo=slo)


@dataclass(frozen=True)
class Condition:
    """One load, and its runs (several where it was repeated). ``key`` is the same for the same load elsewhere.

    ``left`` are runs that were cut off where others came to their end: they are in no figure.
    """

    name: str
    key: tuple[str, object]
    runs: tuple[OneRun, ...]
    left: tuple[OneRun, ...] = ()

    @property
    def conditions(self) -> Conditions:
        """Those of its first run."""
        return self.runs[0].record.conditions

    @property
    def kind(self) -> str:
        """``measured`` or ``simulated``."""
        return self.runs[0].record.kind

    @property
    def caveats(self) -> tuple[Caveat, ...]:
        """Of all its runs, each once."""
        return unique(tuple(each for run in (*self.runs, *self.left) for each in run.record.caveats))

    def detail(self, name: str) -> Any:
        """What its first run's maker said under ``name``."""
        return self.runs[0].record.details.get(name)

    @property
    def is_empty(self) -> bool:
        """Whether it was cut off before anything of it ended: it gives no figure."""
        return all(each.is_cut and not len(each.record.requests) for each in self.runs)

    @property
    def failed_share(self) -> float:
        """Of all its requests, in or out of the window, the share that failed; the cut off and cancelled left out."""
        failed, completed = (sum(each.count(status) for each in self.runs) for status in (FAILED, COMPLETED))
        return failed / (failed + completed) if failed else 0.0

    def summary(self, slo: Slo | None) -> RunSummary:
        """Its runs pooled: intervals from their spread, or of one run from its own."""
        return pool([each.summary(slo) for each in self.runs])


def holds_runs(place: str | Path) -> bool:
    """Whether there is any run at ``place``."""
    return Path(place).is_file() or bool(_found(Path(place)))


def unfinished(place: str | Path, conditions: Sequence[Condition] = ()) -> tuple[Caveat, ...]:
    """That ``place`` was to hold more than its ``conditions``."""
    begun = read_begun(Path(place))
    if begun is None:
        return ()
    runs = [run for each in conditions for run in (*each.runs, *each.left)]
    ended, cut = ([run.name for run in runs if run.is_cut is part] for part in (False, True))
    return begun.missing(Path(place), ended, cut)


def conditions_in(place: str | Path, *, figures_only: bool = False) -> tuple[Condition, ...]:
    """The runs at ``place`` by condition, in ascending order of load.

    A run directory, a folder of them, or a result file of another client (``measure.peers``). ``figures_only``: of a
    long simulated run the summary is made while its rows are read, and they are not kept.
    """
    root = Path(place)
    if root.is_file():
        return tuple(sorted((_peer(each) for each in read_results(root)), key=_load))
    found = [_one(_name(root, each), each, figures_only=figures_only) for each in _directories(root)]
    grouped: dict[tuple[object, ...], list[OneRun]] = {}
    for run in found:
        grouped.setdefault(_group(run), []).append(run)
    return tuple(sorted(map(_condition, grouped.values()), key=_load))


def _one(name: str, directory: Path, *, figures_only: bool) -> OneRun:
    record, files = read_about(directory) if figures_only else (None, None)
    if record is not None and files is not None and record.kind == "simulated" and _bytes(files) >= LONG_BYTES:
        told = _told(record, directory, files)
        if told is not None:
            return OneRun(name, record, told)
    return OneRun(name, read_run(directory))


def _bytes(files: Mapping[str, Any]) -> int:
    sizes = [each.get("bytes") for each in files.values() if isinstance(each, dict)]
    return sum(size for size in sizes if isinstance(size, int))


def _told(record: RunRecord, directory: Path, files: Mapping[str, Any]) -> RunSummary | None:
    """The run in numbers, a part of its rows at a time; None where they are not in order of their schedule."""
    with Scratch() as scratch:
        digest = Digest(scratch, slots=record.slots or 1)
        try:
            for part in parts_of(directory, files):
                if isinstance(part, StepColumns):
                    digest.steps(part)
                elif part.token_times is None and part.sent_s == part.scheduled_s:
                    digest.requests(part)
                else:  # not of our simulator
                    return None
            return digest.summary()
        except OutOfOrder:
            return None


def _condition(runs: list[OneRun]) -> Condition:
    """Repeats in their order: by name, the tenth would stand before the second."""
    ordered = sorted(runs, key=_repeat)
    whole = tuple(each for each in ordered if not each.is_cut)
    left = tuple(each for each in ordered if whole and each.is_cut)
    return Condition(_condition_name(ordered[0]), load_key(ordered[0].record), whole or tuple(ordered), left)


def _repeat(run: OneRun) -> int:
    repeat = run.record.details.get("repeat")
    return repeat if isinstance(repeat, int) else 0


def _peer(found: PeerRun) -> Condition:
    record = RunRecord(
        kind="measured",
        conditions=found.conditions,
        requests=found.requests,
        versions={"client": found.client},
        command=found.client,
        caveats=found.caveats,
        details={"concurrency": found.concurrency, "rate_per_s": found.rate_per_s, "itl_known": found.itl_known},
    )
    run = OneRun("", record, found.told)
    return Condition(_condition_name(run), load_key(record), (run,))


def caveats_beside(place: str | Path) -> tuple[Caveat, ...]:
    """The caveats of the answer that ``bench`` kept beside its runs (``bench.json``); else of what is not there yet."""
    path = Path(place) / ANSWER
    try:
        if not path.is_file():
            return unfinished(place, conditions_in(place)) if Path(place).is_dir() else ()
        if path.stat().st_size > MAX_HEADER_BYTES:
            return ()
        found = json.loads(path.read_text("utf-8")).get("caveats", [])
        return tuple(Caveat(*(str(each[key])[:2_000] for key in ("code", "message", "cure"))) for each in found)
    except (OSError, ValueError, RecursionError, KeyError, TypeError, AttributeError) as error:
        raise InputError("is no answer of bench", where=str(path), hint="remove it, or measure again") from error


def load_key(record: RunRecord) -> tuple[str, object]:
    """The load of a run, as it is named in any other: streams, requests/s, or the words of its conditions."""
    for name in ("concurrency", "rate_per_s"):
        value = _number(record.details.get(name))
        if 0 < value < inf:
            return name, value
    return "load", record.conditions.load


def _group(run: OneRun) -> tuple[object, ...]:
    """Runs of one group are repeats: measured, at one load of one workload, told apart by their repeat."""
    if run.record.kind == "measured" and isinstance(run.record.details.get("repeat"), int):
        return (*load_key(run.record), str(run.record.conditions))
    return (run.name,)


def _condition_name(run: OneRun) -> str:
    """A measured load in words; of a simulated run its folder, which has the policy in it too."""
    kind, value = load_key(run.record)
    if run.record.kind == "measured" and isinstance(value, float):
        unit = ("stream" if value == 1 else "streams") if kind == "concurrency" else "requests/s"
        return f"{value:g} {unit}"
    return run.name or str(value if kind == "load" else f"{value:g} requests/s")


def _load(condition: Condition) -> tuple[str, float, str]:
    kind, value = condition.key
    return kind, value if isinstance(value, float) else inf, condition.name


def _directories(root: Path) -> list[Path]:
    """The run directories at or under ``root``, in order of their names."""
    found = _found(root)
    if not found:
        raise InputError("holds no run", where=str(root), hint="a run directory holds run.json and requests.parquet")
    if len(found) > MOST_RUNS:
        raise InputError(f"holds over {MOST_RUNS:,} runs", where=str(root), hint="name one of the folders in it")
    return sorted(found)


def _found(root: Path) -> list[Path]:
    try:
        if (root / HEADER).exists() or not root.is_dir():
            return [root]
        level, found = [root], []
        for _ in range(DEEPEST):
            level = sorted(each for folder in level for each in folder.iterdir() if _is_open(each))
            found += [each for each in level if (each / HEADER).is_file()]
            level = [each for each in level if not (each / HEADER).is_file()]
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror or error})", where=str(root)) from error
    return found


def _is_open(path: Path) -> bool:
    return path.is_dir() and not path.name.startswith(".") and path.name != CUT


def _name(root: Path, directory: Path) -> str:
    return "" if directory == root else directory.relative_to(root).as_posix()


def _told_window(record: RunRecord) -> Window | None:
    told = record.details.get("window")
    if not isinstance(told, Mapping):
        return None
    start, end, full = (_number(told.get(name)) for name in ("start_s", "end_s", "full_s"))
    if not start <= end:
        return None
    by_end = told.get("by") == "end"
    times = latency.floats(record.requests.end_s if by_end else record.requests.scheduled_s)
    inside = ((times > start) if by_end else (times >= start)) & (times <= end)
    rows, settled, cut = np.flatnonzero(inside), told.get("settled"), told.get("cut")
    return Window(
        start_s=start,
        end_s=end,
        full_s=full,
        rows=rows[np.argsort(times[rows], kind="stable")],
        cut=cut if isinstance(cut, int) else 0,
        settled=settled if isinstance(settled, bool) else None,
        rule=str(told.get("rule", ""))[:200],
    )


def _found_window(record: RunRecord) -> Window | None:
    """The window of a run whose maker named none (cut off, or another client's); None where there is none to find."""
    kind, value = load_key(record)
    if kind == "load":
        return None
    if kind == "concurrency" and isinstance(value, float):
        found = closed_window(record.requests, int(value))
    else:
        found = open_window(record.requests)
    return found if found.duration_s > 0 and len(found.rows) else None


def _number(value: object) -> float:
    whole_or_real = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if whole_or_real and abs(value) < MOST else nan  # type: ignore[arg-type]
