"""Run directories as an answer, and a simulated run as a run directory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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
from servewise.caveats import Caveat, unique
from servewise.conditions import Conditions
from servewise.errors import InputError
from servewise.executing.notes import note
from servewise.records.begun import Begun, read_begun
from servewise.records.columns import RequestColumns, StepColumns
from servewise.records.noted import note_caveats
from servewise.records.open_run import OpenRun, is_left, refuse_kept
from servewise.records.origin import Origin
from servewise.records.run_directory import RunRecord
from servewise.records.streaming import GrowingRun
from servewise.simulate.run import Run
from servewise.version import __version__

NOT_KEPT = "not-kept"
AGAIN = "make room there and run the command again: the seed gives the same requests"


class KeptRun:
    """A simulated run's directory: there, and marked partial, from before the run; whole once it was finished.

    ``policy`` names what served it, ``words`` say all of it; a closed loop has no rate (0) but ``users``.
    Where the disk takes no more it stays marked, and a line says why: the figures of a long run are not lost with its
    records.
    """

    def __init__(
        self,
        directory: Path,
        conditions: Conditions,
        *,
        policy: str,
        words: str,
        rate_per_s: float,
        seed: int,
        origin: Origin,
        users: int | None = None,
    ) -> None:
        load = f"{rate_per_s:g} requests/s" if rate_per_s else conditions.load
        offered = {"rate_per_s": rate_per_s} if rate_per_s else {"concurrency": users}
        self._record = RunRecord(
            kind="simulated",
            conditions=replace(conditions.at(load=load), policy=words, seeds=(seed,)),
            requests=RequestColumns(),
            seed=seed,
            versions={"servewise": __version__},
            command=origin.command,
            sources=origin.sources,
            details={"policy": policy, **offered},
        )
        self._directory = directory
        self._rows: GrowingRun | None = None
        self._is_full = False
        self._open = OpenRun.announce(directory, self._record)

    def finish(self, run: Run) -> None:
        """Keep ``run``."""
        whole = replace(self._record, requests=run.requests, steps=run.steps, slots=run.slots)
        self._as_far_as_it_goes(lambda: self._open.finish(whole))

    def growing(self) -> KeptRun:
        """Where the records of a run too long for memory go; ``finish_grown`` follows."""
        self._rows = GrowingRun(self._directory)
        return self

    def requests(self, requests: RequestColumns) -> None:
        """The next requests that ended."""
        rows = self._growing
        self._as_far_as_it_goes(lambda: rows.requests(requests))

    def steps(self, steps: StepColumns) -> None:
        """The next steps."""
        rows = self._growing
        self._as_far_as_it_goes(lambda: rows.steps(steps))

    def finish_grown(self, slots: int) -> None:
        """All records are there."""
        rows, whole = self._growing, replace(self._record, slots=slots)
        self._as_far_as_it_goes(lambda: self._open.finish_grown(whole, rows.finish()))

    @property
    def _growing(self) -> GrowingRun:
        assert self._rows is not None, "nothing grows here"
        return self._rows

    def _as_far_as_it_goes(self, write: Callable[[], object]) -> None:
        if self._is_full:
            return
        try:
            write()
        except InputError as error:
            if not isinstance(error.__cause__, OSError):
                raise
            self._is_full = True
            note(str(error))

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
        if not any(map(is_left, runs)):
            begun.remove(folder)
    except InputError as error:  # the runs are there, and nothing of them hangs on it
        if not isinstance(error.__cause__, OSError):
            raise
        note(str(error))
    finally:
        claim.release()


def noted(runs: Sequence[Path], caveats: tuple[Caveat, ...]) -> tuple[Caveat, ...]:
    """``caveats`` of an answer, which its ``runs`` hold too from now on; before them, what the disk did not take."""
    left = [each for each in runs if is_left(each)]
    try:
        note_caveats(runs, caveats)
    except InputError as error:
        note(str(error))
        if not left:
            return (Caveat(NOT_KEPT, f"its caveats are not in its runs: {error}", AGAIN), *caveats)
    if not left:
        return caveats
    message = f"the records of {len(left)} of {len(runs)} runs could not be written ({left[0]}): their figures are here"
    return (Caveat(NOT_KEPT, message, AGAIN), *caveats)


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
