"""Tables of ``plan``: the ranking, why each loser lost and to which one, and what moves the winner."""

from __future__ import annotations

from collections.abc import Sequence

from servewise.report.reading import Row, mapping, rows, text
from servewise.report.table import Column, Table, build, facts
from servewise.report.tables.latency import rate_column, value_column
from servewise.report.tables.launch import launch
from servewise.report.tables.precision import precisions
from servewise.report.wording import UNKNOWN, count, dollars, percent, rate, seconds, times

LONGEST, NEAREST = 20, 10  # rows of what is ruled out, of what is not ranked; the answer itself has them all
WENT = {
    "does_not_fit": "do not fit",
    "cannot_be_split": "cannot be split so",
    "refuses_requests": "refuse requests of the workload",
    "slo_with_each_request_alone": "miss the SLO with each request alone",
    "rate_beyond_its_throughput": "need more accelerators than there are, at their bound",
    "dominated": "cannot come among those ranked, by their bound",
}
BEATEN = "Beaten by: costs no more, carries no less on an accelerator, and is no slower (to 5%) with a request alone."
_PARTS = ("accelerators", "accelerator", "parallelism", "weights", "kv", "policy", "engine")


def tables(result: Row) -> tuple[Table, ...]:
    """Ranking, reasons, those not ranked, rejected deployments, sensitivity, precisions, how it is started."""
    behind = (_not_ranked(result), _rejected(result), _went(result))
    return (_ranking(result), _reasons(result), *behind, _sensitivity(result), precisions(result), launch(result))


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
        Column("$/hour", lambda row: dollars(row.get("usd_per_hour"))),
        Column("Replicas", lambda row: count(row.get("replicas"))),
        Column("Bound by", _bound, prose=True, wide=True),
        Column("Accelerators", lambda row: count(row.get("accelerators_in_all", row.get("accelerators"))), wide=True),
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
        Column("Beaten by", _beaten_by),
        Column("Why it stands there", lambda row: text(row.get("why")), prose=True),
    )
    rows_with = [row for row in found if text(row.get("why"))]
    return build("Reasons", columns, rows_with, note=BEATEN if any(map(_beaten_by, rows_with)) else "")


def _beaten_by(row: Row) -> str:
    """The number of the one of the ranking that is better in everything; empty where none is."""
    place = mapping(row.get("dominated_by")).get("place")
    return f"#{place}" if isinstance(place, int) else ""


def _not_ranked(result: Row) -> Table:
    columns = (
        Column("Deployment", lambda row: title_of(row.get("deployment")), prose=True),
        Column("Beaten by", _beaten_by),
        Column("The best that it could be", lambda row: text(row.get("why")), prose=True),
    )
    found = rows(result, "not_ranked")
    more = len(found) - NEAREST
    note = f"And {more:,} more: --json has them, --top all weighs them." if more > 0 else ""
    return build("Not ranked", columns, found[:NEAREST], note=note)


def _rejected(result: Row) -> Table:
    columns = (
        Column("Deployment", lambda row: title_of(row.get("deployment")), prose=True),
        Column("Why not", lambda row: text(row.get("why")), prose=True),
    )
    found = rows(result, "rejected")
    more = len(found) - LONGEST
    return build("Ruled out", columns, found[:LONGEST], note=f"And {more:,} more: --json has them." if more > 0 else "")


def _went(result: Row) -> Table:
    """How the candidates went, where bounds spared some or not all are ranked."""
    pruning = mapping(result.get("pruning"))
    by_reason = mapping(pruning.get("by_reason"))
    spared = [
        (f"not simulated: {words}", count(by_reason.get(name))) for name, words in WENT.items() if by_reason.get(name)
    ]
    early = [("search ended early: behind", count(pruning.get("ended_early")))] if pruning.get("ended_early") else []
    searched = [("searched for their highest rate", count(pruning.get("weighed")))]
    pairs = [*spared, *early, *searched] if spared and pruning.get("on") else []
    return facts("Candidates", [("in all", count(result.get("candidates"))), *pairs] if pairs else [])


def _sensitivity(result: Row) -> Table:
    columns = (
        Column("Input", lambda row: text(row.get("input"), UNKNOWN), prose=True),
        Column("Change", lambda row: text(row.get("change"), UNKNOWN)),
        Column("Max rate/s", lambda row: rate(row.get("max_rate_per_s"))),
        Column("Against the plan", lambda row: times(row.get("ratio"))),
        Column("$/hour", lambda row: dollars(row.get("usd_per_hour")), wide=True),
    )
    return build("How far the winner moves", columns, rows(result, "sensitivity"))
