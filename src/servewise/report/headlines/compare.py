"""Headline of ``compare``."""

from __future__ import annotations

from servewise.answer import Answer
from servewise.report.headlines.headline import Headline, Number, known
from servewise.report.reading import Row, items, number, rows, text
from servewise.report.tables.beside import measure_name
from servewise.report.tables.compare import metric_name, ratio
from servewise.report.wording import times


def compare(answer: Answer) -> Headline:
    """What was claimed, which gates fail, and in how many metrics B is better."""
    result = answer.result
    found = [text(row.get("verdict")) for row in rows(result, "rows")]
    if not found:
        return Headline("")
    words = ", ".join(
        f"{name} {found.count(verdict)}"
        for verdict, name in (("better", "better in"), ("worse", "worse in"), ("same", "the same in"))
    )
    plain = f"B is {words} of {len(found)} metrics; {found.count('unclear')} are unclear."
    claims = [_claim(row) for row in rows(result, "claims")]
    failed = [row for row in rows(result, "gates") if row.get("fails") is True]
    gates = f"{len(failed)} of {len(rows(result, 'gates'))} gates do not hold." if failed else ""
    said = [*claims, gates, plain]
    first = next(each for each in said if each)
    refuted = any(row.get("verdict") == "refuted" for row in rows(result, "claims"))
    rest = " ".join(each for each in said if each and each is not first)
    return Headline(first, rest, _ratios(result), not (failed or refuted))


def _ratios(result: Row) -> tuple[Number, ...]:
    """B over A of the throughput and of the first latencies, at the last load that was compared."""
    found = rows(result, "rows")
    last = [row for row in found if row.get("condition") == found[-1].get("condition")] if found else []
    at = f" at {text(found[-1].get('condition'))}" if found and found[-1].get("condition") else ""
    by_name = {text(row.get("metric")): row for row in last}
    return known(
        *(
            (f"{metric_name(name)}, B over A{at}", ratio(by_name[name].get("ratio")))
            for name in ("output_tokens_per_s", "ttft_p50", "tpot_p50")
            if name in by_name
        )
    )


def beside(answer: Answer) -> Headline:
    """What stands side by side, and the first ratios to the first answer."""
    result = answer.result
    names, found = [text(name) for name in items(result.get("names"))], rows(result, "rows")
    if len(names) < 2 or not found:
        return Headline("")
    ratios = ((row, items(row.get("ratios"))) for row in found[-3:])
    numbers = known(*((_beside_label(row, names), ratio(pair[-1])) for row, pair in ratios if pair))
    return Headline(f"{', '.join(names[:-1])} and {names[-1]} side by side.", "", numbers)


def _beside_label(row: Row, names: list[str]) -> str:
    at = f" at {text(row.get('at'))}" if text(row.get("at")) else ""
    return f"{measure_name(row)}, {names[-1]} over {names[0]}{at}"


def _claim(row: Row) -> str:
    at = f" at {text(row.get('condition'))}" if row.get("condition") else ""
    pair = [number(each) for each in items(row.get("ci95"))]
    reach = f" ({times(pair[0])} to {times(pair[1])})" if len(pair) == 2 and None not in pair else ""
    name = metric_name(row.get("metric"))
    claimed, shown = times(row.get("claimed")), times(row.get("speedup"))
    return f"The claimed {claimed} of {name}{at} is {text(row.get('verdict'))}: {shown}{reach}."
