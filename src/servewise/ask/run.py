"""A run directory as an answer, and a simulated run as a run directory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from servewise.answer import Answer
from servewise.ask.rows import simulated_row
from servewise.conditions import Conditions
from servewise.errors import InputError
from servewise.metrics.summary import summarise
from servewise.records.columns import StepColumns
from servewise.records.run_directory import RunRecord, read_run, write_run
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


def run_answer(directory: str | Path) -> Answer:
    """The run in ``directory`` as an answer of one row."""
    record = read_run(Path(directory))
    if record.kind != "simulated":
        raise InputError(f"holds a {record.kind} run, which this version cannot draw", where=str(directory))
    steps = record.steps if record.steps is not None else StepColumns()
    summary = summarise(record.requests, steps, slots=record.slots or 1)
    rate = record.details.get("rate_per_s")
    row = simulated_row(
        str(record.details.get("policy", record.conditions.policy or "run")),
        float(rate) if isinstance(rate, (int, float)) else summary.requests_per_s,
        summary,
        slots=record.slots or 1,
    )
    return Answer("simulate", record.conditions, {"rows": [row]}, record.caveats)
