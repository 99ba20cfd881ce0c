"""Every table of the study again, in its order, and what agrees."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from servewise.study.batching import (
    batching_runs,
    batching_table,
    run_length_runs,
    run_length_table,
    saturation_table,
)
from servewise.study.cache_work import cache_work_table
from servewise.study.decode_step import decode_step_table
from servewise.study.memory import kv_bytes_table, largest_batch_table
from servewise.study.prompt_caching import prompt_caching_table
from servewise.study.row import StudySummary, StudyTable
from servewise.study.rule_check import rule_check_table
from servewise.study.sensitivity import sensitivity_table
from servewise.study.speculation import speculation_table

Progress = Callable[[int, int, str], None]
"""Called with steps done, steps in all, and the name of the table being made (empty at the end)."""

# In the study's order; each makes one table from the rooms below.
MAKERS: dict[str, Callable[[], StudyTable]] = {
    "cache_work": cache_work_table,
    "kv_bytes": kv_bytes_table,
    "largest_batch": largest_batch_table,
    "decode_step": decode_step_table,
    "batching": batching_table,
    "run_length": run_length_table,
    "saturation": saturation_table,
    "speculation": speculation_table,
    "acceptance_rule": rule_check_table,
    "quantisation": sensitivity_table,
    "prompt_caching": prompt_caching_table,
}


# Runs that a table needs, kept when they are done: each is one step of the progress.
RUNS: dict[str, Callable[[], list[Callable[[], object]]]] = {
    "batching": batching_runs,
    "run_length": run_length_runs,
}


def tables(progress: Progress | None = None) -> tuple[StudyTable, ...]:
    """Every table of the study, recomputed; some 20 s on one core, most of it the batching runs."""
    work = [(name, each) for name, make in MAKERS.items() for each in (*_runs(name), make)]
    made: list[StudyTable] = []
    for done, (name, each) in enumerate(work):
        if progress is not None:
            progress(done, len(work), name)
        found = each()
        if isinstance(found, StudyTable):
            made.append(found)
    if progress is not None:
        progress(len(work), len(work), "")
    return tuple(made)


def _runs(name: str) -> list[Callable[[], object]]:
    return RUNS[name]() if name in RUNS else []


def summary(made: Sequence[StudyTable]) -> StudySummary:
    """How many figures agree, and which do not."""
    judged = [(table.name, row) for table in made for row in table.rows if row.agrees is not None]
    disagreeing = tuple(pair for pair in judged if not pair[1].agrees)
    total = sum(len(table.rows) for table in made)
    return StudySummary(len(judged), len(judged) - len(disagreeing), total - len(judged), disagreeing)
