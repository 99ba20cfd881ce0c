"""Tables of ``loop``: the plan's own point as it was foretold and as it was measured."""

from __future__ import annotations

from servewise.report.reading import Row, mapping, rows
from servewise.report.table import Column, Table, build
from servewise.report.tables.calibrate import coefficients, errors, untold
from servewise.report.tables.compare import metric_name, metric_value, ratio

COMPARED = "Prediction beside measurement"


def tables(result: Row) -> tuple[Table, ...]:
    """The comparison first, then what it rests on."""
    calibration = mapping(result.get("calibration"))
    columns = (
        Column("Metric", lambda row: metric_name(plain(row)), prose=True),
        Column("Predicted", lambda row: metric_value(plain(row), row.get("predicted"))),
        Column("Measured", lambda row: metric_value(plain(row), row.get("measured"))),
        Column("Ratio", lambda row: ratio(row.get("ratio"))),
    )
    compared = build(COMPARED, columns, rows(result, "rows"), note="Foretold before it was measured.")
    return (compared, coefficients(calibration), untold(calibration), errors(calibration))


def plain(row: Row) -> str:
    """The metric's name without its unit."""
    metric = row.get("metric")
    return metric.removesuffix("_s") if isinstance(metric, str) and not metric.endswith("per_s") else str(metric)
