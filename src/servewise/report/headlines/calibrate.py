"""Headlines of ``calibrate`` and ``loop``: how far a prediction is off."""

from __future__ import annotations

from servewise.answer import Answer
from servewise.report.headlines.headline import Headline, known
from servewise.report.reading import mapping, number, rows
from servewise.report.tables.compare import metric_name, ratio
from servewise.report.tables.loop import plain
from servewise.report.wording import count, percent, rate


def calibrate(answer: Answer) -> Headline:
    """How many coefficients the runs told, and the error on what was held out."""
    found = mapping(answer.result.get("coefficients"))
    told = [each for each in found.values() if number(mapping(each).get("value")) is not None]
    if not found:
        return Headline("")
    errors = mapping(answer.result.get("heldout_error"))
    numbers = known(
        ("median error, held out", percent(errors.get("median"))),
        ("90th percentile of it", percent(errors.get("p90"))),
        ("records held out", count(errors.get("n"))),
    )
    return Headline(f"The runs tell {len(told)} of {len(found)} coefficients of this server.", "", numbers)


def loop(answer: Answer) -> Headline:
    """What was foretold over what was measured, at the rate that the plan found."""
    found = [row for row in rows(answer.result, "rows") if number(row.get("ratio"))]
    if not found:
        return Headline("No arrival rate keeps the SLO on this server.", good=False)
    worst = max(found, key=_off)
    words = f"At {rate(answer.result.get('rate_per_s'))} requests/s the farthest off is {metric_name(plain(worst))}"
    pairs = ((f"{metric_name(plain(row))}, predicted over measured", ratio(row.get("ratio"))) for row in found[:3])
    return Headline(f"{words}: predicted {ratio(worst.get('ratio'))} what was measured.", "", known(*pairs))


def _off(row: object) -> float:
    """How far a ratio is from 1, to either side alike."""
    found = number(mapping(row).get("ratio")) or 1.0
    return max(abs(found), 1 / abs(found))
