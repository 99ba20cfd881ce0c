"""Tables of ``probe policies``: measured beside predicted, policy by policy and rate by rate."""

from __future__ import annotations

from servewise.report.reading import Row, mapping, number, percentile, rows, text
from servewise.report.table import Cell, Column, Table, build, facts
from servewise.report.wording import UNKNOWN, count, figure, percent, rate, seconds, times

TITLE = "Measured, and predicted in % of it"
_LATENCIES = (("TTFT", "ttft"), ("TPOT", "tpot"), ("E2E", "e2e"))


def tables(result: Row) -> tuple[Table, ...]:
    """The runs, how the clock fits its calibrations, and what the probe found out on its way."""
    return (_runs(result), _calibrations(result), _found(result))


def _runs(result: Row) -> Table:
    columns: list[Column] = [
        Column("Policy", lambda row: text(row.get("policy"), UNKNOWN) + _star(row), prose=True),
        Column("Rate/s", lambda row: figure(row.get("rate_per_s"))),
    ]
    for name, key in _LATENCIES:
        for at in ("p50", "p95"):
            hidden = key == "tpot" or (key, at) == ("ttft", "p50")
            columns.append(Column(f"{name} {at}", _measured(f"{key}_s", at), wide=hidden))
            columns.append(Column("of it", _ratio(f"{key}_{at}"), wide=hidden))
    columns += [
        Column("Use", lambda row: percent(mapping(row.get("measured")).get("utilisation"))),
        Column("of it", _ratio("utilisation"), wide=True),
        Column("Slower than calibrated", lambda row: times(row.get("slowness")), wide=True),
        Column("E2E p50 at that speed", _ratio("e2e_p50", "ratios_at_speed"), wide=True),
        Column("E2E p95 at that speed", _ratio("e2e_p95", "ratios_at_speed"), wide=True),
        Column("Waited", lambda row: percent(row.get("waited_share")), wide=True),
    ]
    found = rows(result, "rows")
    starred = any(row.get("below_saturation") is False for row in found)
    note = "Green: p50 and p95 end to end within 10%." + (" * at or above saturation, not judged." if starred else "")
    return build(TITLE, columns, found, note=note, marks=_mark, grouped=True)


def _star(row: Row) -> str:
    return " *" if row.get("below_saturation") is False else ""


def _measured(key: str, at: str) -> Cell:
    return lambda row: seconds(percentile(mapping(row.get("measured")).get(key), at))


def _ratio(key: str, of: str = "ratios") -> Cell:
    def cell(row: Row) -> str:
        found = number(mapping(row.get(of)).get(key))
        return UNKNOWN if found is None else f"{100 * found:.0f}%"

    return cell


def _mark(row: Row) -> str:
    if row.get("below_saturation") is not True:
        return ""
    return "good" if row.get("within") is True else "bad"


def _calibrations(result: Row) -> Table:
    columns = (
        Column("Calibration", lambda row: count(row.get("turn"))),
        Column("Steps", lambda row: count(row.get("steps"))),
        Column("Median error", lambda row: percent(row.get("median_error"))),
        Column("p90 error", lambda row: percent(row.get("p90_error"))),
        Column("Predicted in all", lambda row: percent(row.get("sum_ratio"))),
    )
    numbered = [{**row, "turn": turn} for turn, row in enumerate(rows(result, "calibrations"))]
    note = "The clock fitted to all of them, against each: how far the machine drifts."
    return build("Step times: fit and drift", columns, numbered, note=note)


def _found(result: Row) -> Table:
    judged, within, at_speed = (
        count(result.get(key)) for key in ("judged", "within_10_percent", "within_10_percent_at_speed")
    )
    pairs = [
        ("Within 10% below saturation", f"{within} of {judged}" if judged != UNKNOWN else UNKNOWN),
        ("The same at the speed the machine had then", f"{at_speed} of {judged}" if at_speed != UNKNOWN else UNKNOWN),
        ("Largest error of p50 and p95 end to end", percent(result.get("largest_error"))),
        ("Capacity of continuous batching (requests/s)", rate(result.get("capacity_per_s"))),
        ("Window of dynamic batching", seconds(result.get("window_s"))),
        ("Clock", text(result.get("clock"), UNKNOWN)),
    ]
    return facts("What was found", pairs)
