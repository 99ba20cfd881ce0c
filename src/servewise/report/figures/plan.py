"""Figures of ``plan``: cost by deployment, what moves the winner, bytes against speed by precision."""

from __future__ import annotations

from servewise.answer import Answer
from servewise.report.charts.bars import Cost, Swing, cost_chart, sensitivity_chart
from servewise.report.charts.figure import Figure
from servewise.report.figures.pick import table_behind
from servewise.report.figures.precision import precision_figures
from servewise.report.reading import distinct, plottable, rows, text
from servewise.report.tables.plan import short_titles

_MOST_RATIO = 1e3


def figures(answer: Answer) -> list[Figure]:
    """Cost, sensitivity, precisions."""
    return [*_cost(answer), *_sensitivity(answer), *precision_figures(answer)]


def _cost(answer: Answer) -> list[Figure]:
    ranking = rows(answer.result, "ranking")
    titles, _ = short_titles([row.get("deployment") for row in ranking])
    costs = [
        Cost(title, usd)
        for title, row in zip(titles, ranking, strict=True)
        if (usd := plottable(row.get("usd_per_million_output_tokens")))
    ]
    if not costs:
        return []
    table = table_behind(answer, "Deployments, best first")
    return [Figure("Cost by deployment", cost_chart(costs), answer.conditions, table)]


def _sensitivity(answer: Answer) -> list[Figure]:
    found = [
        (text(row.get("input"), "?"), text(row.get("change")), ratio)
        for row in rows(answer.result, "sensitivity")
        if (ratio := plottable(row.get("ratio"))) and ratio < _MOST_RATIO
    ]
    swings = [
        Swing(name, tuple((change, ratio) for each, change, ratio in found if each == name))
        for name in distinct([name for name, _, _ in found])
    ]
    swings = [swing for swing in swings if any(ratio != 1 for _, ratio in swing.ratios)]
    if not swings:
        return []
    table = table_behind(answer, "How far the winner moves")
    return [Figure(table.title, sensitivity_chart(swings), answer.conditions, table)]
