"""Tables of ``plan``: the ranking, why each loser lost, and what moves the winner."""

from __future__ import annotations

from collections.abc import Sequence

from servewise.report.reading import Row, mapping, rows, text
from servewise.report.table import Column, Table, build
from servewise.report.tables.latency import rate_column, value_column
from servewise.report.tables.launch import launch
from servewise.report.tables.precision import precisions
from servewise.report.wording import UNKNOWN, count, dollars, percent, rate, seconds, times

_PARTS = ("accelerators", "accelerator", "parallelism", "weights", "kv", "policy", "engine")


def tables(result: Row) -> tuple[Table, ...]:
    """Ranking, reasons, rejected deployments, sensitivity, precisions, how it is started."""
    found = (_ranking(result), _reasons(result), _rejected(result), _sensitivity(result), precisions(result))
    return (*found, launch(result))


def title_of(deployment: object) -> str:
    """A deployment's title, or its parts in one line."""
    parts = mapping(deployment)
    found = text(deployment)
    return found or ", ".join(text(parts.get(name)) for name in _PARTS if text(parts.get(name))) or UNKNOWN


def short_titles(deployments: Sequence[object]) -> tuple[list[str], str]:
    """The deployments' titles without the parts (between commas) that all share, and those parts.

    >>> short_titles(["1 x H100, fp8 weights, vllm", "2 x L4, fp8 weights, vllm"])
    (['1 x H100', '2 x L4'], 'fp8 weights, vllm')
    """
    split = [title_of(each).split(", ") for each in deployments]
    if len(split) < 2:
        return [", ".join(parts) for parts in split], ""
    shared = [part for part in split[0][1:] if all(part in parts[1:] for parts in split)]
    return [", ".join(part for part in parts if part not in shared) for parts in split], ", ".join(shared)


def _ranking(result: Row) -> Table:
    places = {id(row): place for place, row in enumerate(rows(result, "ranking"), start=1)}
    titles, shared = short_titles([row.get("deployment") for row in rows(result, "ranking")])
    columns = (
        Column("#", lambda row: str(places[id(row)])),
        Column("Deployment", lambda row: titles[places[id(row)] - 1], prose=True),
        rate_column("Max rate/s", "max_rate_per_s"),
        value_column("TTFT p95", "ttft_s", "p95", seconds),
        value_column("TPOT p95", "tpot_s", "p95", seconds),
        Column("$/M out", lambda row: dollars(row.get("usd_per_million_output_tokens"))),
        Column("Bound by", _bound, prose=True),
        Column("$/hour", lambda row: dollars(row.get("usd_per_hour")), wide=True),
        Column("Accelerators", lambda row: count(row.get("accelerators")), wide=True),
        Column("Replicas", lambda row: count(row.get("replicas")), wide=True),
        Column("KV peak", lambda row: percent(row.get("kv_peak_share")), wide=True),
    )
    return build(
        "Deployments, best first",
        columns,
        rows(result, "ranking"),
        note=f"All: {shared}." if shared else "",
        marks=lambda row: _first(places[id(row)]),
    )


def _bound(row: Row) -> str:
    bound = text(row.get("bound"), UNKNOWN)
    return bound.upper() if bound == "slo" else bound


def _first(place: int) -> str:
    return "good" if place == 1 else ""


def _reasons(result: Row) -> Table:
    found = [dict(row, place=place) for place, row in enumerate(rows(result, "ranking"), start=1)]
    columns = (
        Column("#", lambda row: str(row["place"])),
        Column("Why it stands there", lambda row: text(row.get("why")), prose=True),
    )
    return build("Reasons", columns, [row for row in found if text(row.get("why"))])


def _rejected(result: Row) -> Table:
    columns = (
        Column("Deployment", lambda row: title_of(row.get("deployment")), prose=True),
        Column("Why not", lambda row: text(row.get("why")), prose=True),
    )
    return build("Ruled out", columns, rows(result, "rejected"))


def _sensitivity(result: Row) -> Table:
    columns = (
        Column("Input", lambda row: text(row.get("input"), UNKNOWN), prose=True),
        Column("Change", lambda row: text(row.get("change"), UNKNOWN)),
        Column("Max rate/s", lambda row: rate(row.get("max_rate_per_s"))),
        Column("Against the plan", lambda row: times(row.get("ratio"))),
        Column("$/hour", lambda row: dollars(row.get("usd_per_hour")), wide=True),
    )
    return build("How far the winner moves", columns, rows(result, "sensitivity"))
