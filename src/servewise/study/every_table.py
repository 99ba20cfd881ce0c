"""Every table of the study again, in its order, and what agrees."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from servewise.study.batching import batching_table, run_length_table, saturation_table
from servewise.study.cache_work import cache_work_table
from servewise.study.decode_step import decode_step_table
from servewise.study.memory import kv_bytes_table, largest_batch_table
from servewise.study.prompt_caching import prompt_caching_table
from servewise.study.row import StudySummary, StudyTable
from servewise.study.rule_check import rule_check_table
from servewise.study.sensitivity import sensitivity_table
from servewise.study.speculation import speculation_table

Progress = Callable[[int, int, str], None]
"""Called with tables done, tables in all, and the name of the one that starts (empty at the end)."""

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


def tables(progress: Progress | None = None) -> tuple[StudyTable, ...]:
    """Every table of the study, recomputed; some 20 s, most of it the batching runs."""
    made: list[StudyTable] = []
    for name, make in MAKERS.items():
        if progress is not None:
            progress(len(made), len(MAKERS), name)
        made.append(make())
    if progress is not None:
        progress(len(made), len(MAKERS), "")
    return tuple(made)


def summary(made: Sequence[StudyTable]) -> StudySummary:
    """How many figures agree, and which do not."""
    judged = [(table.name, row) for table in made for row in table.rows if row.agrees is not None]
    disagreeing = tuple(pair for pair in judged if not pair[1].agrees)
    total = sum(len(table.rows) for table in made)
    return StudySummary(len(judged), len(judged) - len(disagreeing), total - len(judged), disagreeing)
