"""Run directories as an answer, and a simulated run as a run directory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

from servewise.answer import Answer
from servewise.ask.differing import over_loads
from servewise.ask.measured import measured_answer
from servewise.ask.origin import made_by
from servewise.ask.rows import simulated_row
from servewise.ask.runs import Condition, conditions_in, holds_runs, unfinished
from servewise.caveats import unique
from servewise.conditions import Conditions
from servewise.records.begun import Begun, read_begun
from servewise.records.columns import RequestColumns
from servewise.records.open_run import OpenRun, refuse_kept
from servewise.records.origin import Origin
from servewise.records.run_directory import RunRecord
from servewise.records.streaming import GrowingRun
from servewise.simulate.run import Run
from servewise.version import __version__


class KeptRun:
    """A simulated run's directory: there, and marked partial, from before the run; whole once it was finished."""

    def __init__(
        self, directory: Path, conditions: Conditions, *, policy: str, rate_per_s: float, seed: int, origin: Origin
    ) -> None:
        self._record = RunRecord(
            kind="simulated",
            conditions=replace(conditions.at(load=f"{rate_per_s:g} requests/s"), policy=policy, seeds=(seed,)),
            requests=RequestColumns(),
            seed=seed,
            versions={"servewise": __version__},
            command=origin.command,
            sources=origin.sources,
            details={"policy": policy, "rate_per_s": rate_per_s},
        )
        self._directory = directory
        self._rows: GrowingRun | None = None
        self._open = OpenRun.announce(directory, self._record)

    def finish(self, run: Run) -> None:
        """Keep ``run``."""
        self._open.finish(replace(self._record, requests=run.requests, steps=run.steps, slots=run.slots))

    def growing(self) -> GrowingRun:
        """Where the records of a run too long for memory go; ``finish_grown`` follows."""
        self._rows = GrowingRun(self._directory)
        return self._rows

    def finish_grown(self, slots: int) -> None:
        """All records are there."""
        assert self._rows is not None, "nothing grows here"
        self._open.finish_grown(replace(self._record, slots=slots), self._rows.finish())

    def __enter__(self) -> KeptRun:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._rows is not None:
            self._rows.close()
        self._open.close()


@contextmanager
def planned(
    folder: Path | None, runs: Sequence[Path], conditions: Conditions, command: str, line: str
) -> Iterator[None]:
    """While entered, ``folder`` says that it is to hold ``runs``, made by ``line``; when they are there, no more.

    Raises InputError, before anything is run, where one of them is there already.
    """
    for each in runs:
        refuse_kept(each)
    if folder is None or list(runs) == [folder]:
        yield
        return
    names = tuple(each.relative_to(folder).as_posix() for each in runs)
    begun = Begun(command=command, conditions=conditions, runs=names, asked={"line": line})
    claim = begun.place(folder)
    try:
        yield
        begun.remove(folder)
    finally:
        claim.release()


def run_answer(place: str | Path) -> Answer:
    """The run, or the runs, at ``place`` as an answer: of ``simulate``, or of ``bench`` where any was measured."""
    begun = read_begun(Path(place))
    if begun is not None and not holds_runs(place):
        return _nothing_yet(place, begun)
    conditions = conditions_in(place, figures_only=True)
    if any(each.kind != "simulated" for each in conditions):
        return measured_answer(place)
    return Answer(
        command="simulate",
        conditions=over_loads([each.conditions for each in conditions]),
        result={
            "rows": [_simulated(each) for each in conditions if not each.is_empty],
            "made_by": made_by(run.record for each in conditions for run in (*each.runs, *each.left)),
        },
        caveats=unique((*unfinished(place, conditions), *(one for each in conditions for one in each.caveats))),
    )


def _nothing_yet(place: str | Path, begun: Begun) -> Answer:
    """What was begun and has no run."""
    command = "bench" if begun.command == "servewise bench" else "simulate"
    line = begun.asked.get("line")
    rows: dict[str, Any] = {"rows": [], "made_by": [{"command": line, "sources": []}] if line else []}
    more = {"run_dir": str(place)} if command == "bench" else {}
    return Answer(command, begun.conditions, rows | more, unfinished(place))


def _simulated(condition: Condition) -> dict[str, Any]:
    summary, rate = condition.summary(None), condition.detail("rate_per_s")
    return simulated_row(
        str(condition.detail("policy") or condition.conditions.policy or "run"),
        float(rate) if isinstance(rate, (int, float)) else summary.requests_per_s,
        summary,
        slots=condition.runs[0].record.slots or 1,
    )
