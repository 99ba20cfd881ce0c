"""Run directories as an answer, and a simulated run as a run directory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from servewise.answer import Answer
from servewise.ask.differing import over_loads
from servewise.ask.measured import measured_answer
from servewise.ask.rows import simulated_row
from servewise.ask.runs import Condition, conditions_in
from servewise.caveats import unique
from servewise.conditions import Conditions
from servewise.records.run_directory import RunRecord, write_run
from servewise.simulate.run import Run
from servewise.version import __version__


def keep_run(
    directory: Path, run: Run, conditions: Conditions, *, policy: str, rate_per_s: float, seed: int, command: str
) -> None:
    """Write a simulated ``run`` as ``directory``, whole or not at all."""
    write_run(
        directory,
        RunRecord(
            kind="simulated",
            conditions=replace(conditions.at(load=f"{rate_per_s:g} requests/s"), policy=policy, seeds=(seed,)),
            requests=run.requests,
            steps=run.steps,
            slots=run.slots,
            seed=seed,
            versions={"servewise": __version__},
            command=command,
            details={"policy": policy, "rate_per_s": rate_per_s},
        ),
    )


def run_answer(place: str | Path) -> Answer:
    """The run, or the runs, at ``place`` as an answer: of ``simulate``, or of ``bench`` where any was measured."""
    conditions = conditions_in(place)
    if any(each.kind != "simulated" for each in conditions):
        return measured_answer(place)
    return Answer(
        command="simulate",
        conditions=over_loads([each.conditions for each in conditions]),
        result={"rows": [_simulated(each) for each in conditions]},
        caveats=unique(tuple(caveat for each in conditions for caveat in each.caveats)),
    )


def _simulated(condition: Condition) -> dict[str, Any]:
    summary, rate = condition.summary(None), condition.detail("rate_per_s")
    return simulated_row(
        str(condition.detail("policy") or condition.conditions.policy or "run"),
        float(rate) if isinstance(rate, (int, float)) else summary.requests_per_s,
        summary,
        slots=condition.runs[0].record.slots or 1,
    )
