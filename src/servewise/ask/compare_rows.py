"""Rows of a comparison's answer: metrics, the two sides, loads, gates and claims."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from servewise.ask.compare_demands import Demands
from servewise.ask.compare_loads import Compared
from servewise.ask.differing import over_loads
from servewise.ask.runs import Condition
from servewise.metrics.claim import judge
from servewise.metrics.comparison import Gate


def compared_rows(a: str | Path, b: str | Path, loads: Sequence[Compared]) -> dict[str, Any]:
    """Every metric of every load, where the sides are from, and how the loads were compared."""
    return {
        "rows": [row.to_json() | _named(each, loads) for each in loads for row in each.rows],
        "a": _side(a, [each.a for each in loads]),
        "b": _side(b, [each.b for each in loads]),
        "conditions": [_condition_row(each) for each in loads],
    }


def judged_rows(demands: Demands, loads: Sequence[Compared]) -> dict[str, Any]:
    """Whether each load keeps the gates and what was claimed."""
    claim = demands.claim
    return {
        "gates": [_gate_row(gate, each) for each in loads for gate in demands.gates],
        "claims": []
        if claim is None
        else [{"condition": each.name} | judge(claim, each.rows).to_json() for each in loads],
    }


def _named(compared: Compared, loads: Sequence[Compared]) -> dict[str, str]:
    """Its load, where there are several."""
    return {"condition": compared.name} if len(loads) > 1 else {}


def _side(place: str | Path, conditions: Sequence[Condition]) -> dict[str, Any]:
    first = conditions[0]
    return {
        "name": Path(place).name or str(place),
        "kind": first.kind,
        "runs": sum(len(each.runs) for each in conditions),
        "conditions": over_loads([each.conditions for each in conditions]).to_json(),
    }


def _condition_row(compared: Compared) -> dict[str, Any]:
    a, b = compared.summaries
    return {
        "condition": compared.name,
        "paired": not compared.why,
        "pairs": compared.pairs,
        "why_not_paired": compared.why,
        "completed_a": a.completed,
        "completed_b": b.completed,
    }


def _gate_row(gate: Gate, compared: Compared) -> dict[str, Any]:
    ratio = next((row.ratio for row in compared.rows if row.metric == gate.metric), float("nan"))
    return {
        "gate": str(gate),
        "condition": compared.name,
        "change": ratio - 1,
        "fails": gate.fails(compared.rows),
        "certain": gate.is_certain(compared.rows),
    }
