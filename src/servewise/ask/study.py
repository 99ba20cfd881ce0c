"""The study's tables again, from the product's own rooms, side by side with its figures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from servewise.answer import Answer
from servewise.caveats import Caveat
from servewise.conditions import Conditions
from servewise.executing.executor import Executor, executor_named
from servewise.executing.workers import Workers
from servewise.study import StudyTable, figures, summary
from servewise.study.every_table import MAKERS
from servewise.version import __version__

Progress = Callable[[int, int], None]


def study(
    *,
    processes: int = 1,
    executor: str | Executor = "local",
    keep: str | Path | None = None,
    progress: Progress | None = None,
) -> Answer:
    """Every table of the study with its figures, ours and a verdict a row; some 20 s, most of it batching runs.

    The rooms are fed the study's rounded inputs (26 GB of weights, 2 TB/s, 312 TFLOP/s).
    """
    with Workers(None, executor_named(executor, processes, keep)) as workers:
        made = list(workers.each(_made, list(MAKERS), progress))
    counted = summary(made)
    return Answer(
        command="study",
        conditions=Conditions(
            hardware="one accelerator of 80 GB, 2 TB/s, 312 TFLOP/s (the study's round figures)",
            load="as each table says",
            lengths="as each table says",
            precision="16-bit where no other is named",
            model="Llama 2 13B as the study rounds it; a tiny transformer for exactness and quantisation",
            engine="ideal",
            estimator="ideal",
            version=__version__,
        ),
        result={
            "tables": [each.to_json() for each in made],
            "all_agree": counted.all_agree,
            "judged": counted.judged,
            "agreeing": counted.agreeing,
            "not_judged": counted.not_judged,
            "figures": {each.name: each.to_json() for each in figures(made)},
        },
        caveats=tuple(
            Caveat("study-disagrees", f"{name}: {row.quantity} {row.ours:.4g} against {row.printed}", row.tolerance)
            for name, row in counted.disagreeing
        ),
    )


def _made(_: None, name: str) -> StudyTable:
    return MAKERS[name]()
