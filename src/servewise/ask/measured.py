"""Measured runs on disk as an answer of ``bench``, with what charts need of their requests: gaps and a timeline."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from servewise.answer import Answer
from servewise.ask.differing import over_loads
from servewise.ask.differing import side_by_side as all_conditions
from servewise.ask.origin import made_by
from servewise.ask.rows import measured_row
from servewise.ask.runs import Condition, OneRun, conditions_in, unfinished
from servewise.caveats import Caveat, unique
from servewise.metrics import latency
from servewise.records.columns import COMPLETED

Floats = NDArray[np.float64]
POINTS = 100  # of a distribution's curve, and of a timeline
TAIL = (0.991, 0.993, 0.995, 0.997, 0.999, 1.0)
FEWEST_GAPS = 20


def measured_answer(place: str | Path) -> Answer:
    """The measured runs at ``place`` as an answer of ``bench``: a row for each load, repeats pooled."""
    conditions = conditions_in(place)
    return with_detail(
        Answer(
            command="bench",
            conditions=over_loads([each.conditions for each in conditions]),
            result={"rows": [_row(each) for each in conditions if not each.is_empty], "run_dir": str(place)},
            caveats=unique((*unfinished(place, conditions), *(one for each in conditions for one in each.caveats))),
        ),
        conditions,
    )


def with_detail(answer: Answer, conditions: Sequence[Condition]) -> Answer:
    """``answer`` with, for each of ``conditions``, the curve of its ITL and the timeline of its first run.

    And with what made the runs.
    """
    made = made_by(run.record for each in conditions for run in (*each.runs, *each.left))
    detail = [_detail(each) for each in conditions if each.kind == "measured" and len(each.runs[0].record.requests)]
    return replace(answer, result={**answer.result, "detail": detail, "made_by": made})


def side_by_side(answers: Mapping[str, Answer]) -> Answer:
    """Answers of ``bench`` and ``simulate`` as one of ``bench``, each row told by the name of its answer (``run``)."""
    rows = [{**row, "run": name} for name, answer in answers.items() for row in answer.result.get("rows", ())]
    caveats = tuple(
        Caveat(each.code, f"{name}: {each.message}", each.cure)
        for name, answer in answers.items()
        for each in answer.caveats
    )
    whole = all_conditions({name: answer.conditions for name, answer in answers.items()})
    return Answer("bench", whole, {"rows": rows, "runs": list(answers)}, unique(caveats))


def _row(condition: Condition) -> dict[str, Any]:
    outcomes: Counter[str] = Counter()
    for run in condition.runs:
        outcomes.update(_outcomes(run))
    streams, rate = condition.detail("concurrency"), condition.detail("rate_per_s")
    return measured_row(
        condition.summary(None),
        concurrency=streams if isinstance(streams, int) else None,
        rate_per_s=float(rate) if isinstance(rate, (int, float)) else None,
        outcomes=outcomes,
        load=condition.name,
    )


def _outcomes(run: OneRun) -> Counter[str]:
    """How its requests ended; a failure by what its error begins with."""
    requests = run.record.requests
    ended: Counter[str] = Counter(text.partition(":")[0][:40] for text in requests.errors.values())
    ended["completed"] = run.count(COMPLETED)
    return ended


def _detail(condition: Condition) -> dict[str, Any]:
    gaps = np.concatenate([_gaps(each) for each in condition.runs])
    first = condition.runs[0]
    return {
        "load": condition.name,
        "itl": _curve(gaps) if len(gaps) >= FEWEST_GAPS else None,
        "tokens_per_event": latency.tokens_per_event(first.record.requests),
        "timeline": _timeline(first),
    }


def _gaps(run: OneRun) -> Floats:
    """The gaps of the run's part that counts."""
    if not run.record.details.get("itl_known", True):
        return np.empty(0)
    values, rows = latency.gaps_by_row(run.record.requests)
    return values[np.isin(rows, run.part.rows)]


def _curve(values: Floats) -> dict[str, list[float]]:
    """The quantiles of ``values``, by hundredths and closer in the tail."""
    shares = np.concatenate((np.arange(POINTS) / POINTS, (0.99,), TAIL))
    return {"share": shares.tolist(), "value_s": np.quantile(values, shares).tolist()}


def _timeline(run: OneRun) -> dict[str, Any]:
    """Tokens/s and open requests over the run, in 100 slices of its time, and what the server told meanwhile."""
    requests = run.record.requests
    part, ends = run.part, latency.floats(requests.end_s)
    last = float(np.nanmax(ends)) if np.isfinite(ends).any() else 0.0
    edges = np.linspace(0.0, last, POINTS + 1)
    middle = (edges[1:] + edges[:-1]) / 2
    times, tokens = latency.token_arrivals(requests)
    width = last / POINTS
    sent = np.sort(latency.floats(requests.sent_s)[np.isfinite(ends)])
    opened = np.searchsorted(sent, middle, side="right") - np.searchsorted(np.sort(ends[np.isfinite(ends)]), middle)
    return {
        "time_s": middle.tolist(),
        "output_tokens_per_s": (np.histogram(times, edges, weights=tokens)[0] / width).tolist() if width else [],
        "open": np.maximum(opened, 0).tolist(),
        "window_s": None if run.window is None else [part.start_s, part.end_s],
        "server": run.record.details.get("server"),
    }
