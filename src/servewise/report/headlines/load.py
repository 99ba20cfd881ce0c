"""Headlines of runs under load: ``simulate``, ``fleet`` and ``bench``."""

from __future__ import annotations

from servewise.answer import Answer
from servewise.report.headlines.headline import Headline, Number, known
from servewise.report.reading import Row, items, mapping, number, percentile, rows, text
from servewise.report.tables.bench import load_words
from servewise.report.tables.fleet import name as layout
from servewise.report.wording import count, dollars, figure, rate, seconds, times


def simulate(answer: Answer) -> Headline:
    """Where each policy saturates; the numbers are of the last load at which the best of them settles."""
    result = answer.result
    per = "step" if result.get("unit_step") is True else "s"
    knees = [
        f"{text(knee.get('policy'))} {rate(low)} to {rate(high)}"
        for knee in rows(result, "knees")
        if (low := number(knee.get("low_per_s"))) is not None and (high := number(knee.get("high_per_s"))) is not None
    ]
    words = f"Saturation, in requests/{per}: {', '.join(knees)}." if knees else ""
    settled = [row for row in rows(result, "rows") if row.get("stable") is not False and _rate(row) is not None]
    best = max(settled, key=lambda row: _rate(row) or 0.0, default=None)
    if best is None or result.get("unit_step") is True:
        return Headline(words)
    at = f"{text(best.get('policy'))} at {figure(_rate(best))}/s"
    return Headline(words or f"Latency of {at}.", "", _latencies(best, at))


def fleet(answer: Answer) -> Headline:
    """The layout and router with the most goodput at the highest rate."""
    found = [row for row in rows(answer.result, "rows") if number(row.get("goodput_per_s")) is not None]
    rates = [each for row in found if (each := _rate(row)) is not None]
    top = [row for row in found if not rates or _rate(row) == max(rates)]
    if not top:
        return Headline("")
    best = max(top, key=lambda row: number(row.get("goodput_per_s")) or 0.0)
    goodput = rate(best.get("goodput_per_s"))
    words = f"At {figure(_rate(best))} requests/s, {layout(best)} does most within the target: {goodput}/s."
    others = [row for row in top if row is not best]
    said = ", ".join(f"{layout(row)} {rate(row.get('goodput_per_s'))}/s" for row in others)
    detail = f"The others: {said}."
    cost = ("per million output tokens", dollars(best.get("usd_per_million_output_tokens")))
    return Headline(words, detail if 0 < len(others) < 4 else "", (*_latencies(best, "")[:2], *known(cost)))


def bench(answer: Answer) -> Headline:
    """Of a search: the highest load that keeps the SLO, and the knee. Else what the most loaded run reached."""
    result = answer.result
    if items(result.get("runs")):
        return Headline(f"{len(items(result.get('runs')))} runs side by side.")
    search = mapping(result.get("search"))
    best, ends = number(search.get("best")), items(search.get("knee"))
    if best is None or len(ends) != 2:
        return _measured(result)
    unit = "streams" if search.get("of") == "concurrency" else "requests/s"
    if best == 0:
        return Headline("No load that was tried keeps the SLO.", good=False)
    high = f"and {figure(ends[1])}" if number(ends[1]) is not None else "and beyond what was tried"
    kept = next((row for row in rows(result, "rows") if _load(row) == best), None)
    numbers = _latencies(kept, load_words(kept)) if kept else ()
    knee = f"The knee lies between {figure(ends[0])} {high} {unit}."
    return Headline(f"{figure(best)} {unit} keep the SLO.", knee, numbers)


def _measured(result: Row) -> Headline:
    """The load with the most output tokens/s, and how that compares with the least load."""
    found = [row for row in rows(result, "rows") if number(row.get("output_tokens_per_s"))]
    if not found:
        return Headline("")
    first, most = found[0], max(found, key=lambda row: number(row.get("output_tokens_per_s")) or 0.0)
    words = f"{load_words(most)}: {rate(most.get('output_tokens_per_s'))} output tokens/s at most."
    return Headline(words, " ".join(filter(None, (_growth(first, most), _failures(found)))), _latencies(most, ""))


def _growth(first: Row, most: Row) -> str:
    ttft = percentile(most.get("ttft_s"), "p50"), percentile(first.get("ttft_s"), "p50")
    if first is most or ttft[0] is None or not ttft[1]:
        return ""
    tokens = [float(row["output_tokens_per_s"]) for row in (most, first)]
    grown = times(tokens[0] / tokens[1])
    return f"{grown} the tokens/s of {load_words(first)}, at {times(ttft[0] / ttft[1])} its TTFT p50."


def _failures(found: list[Row]) -> str:
    failed = sum(number(row.get("errors")) or 0.0 for row in found)
    asked = sum(number(row.get("requests")) or 0.0 for row in found)
    return f"{count(failed)} of {count(asked)} requests failed." if failed and asked else ""


def _latencies(row: Row, at: str) -> tuple[Number, ...]:
    behind = f", {at}" if at else ""
    return known(
        (f"TTFT p95{behind}", seconds(percentile(row.get("ttft_s"), "p95"))),
        (f"TPOT p95{behind}", seconds(percentile(row.get("tpot_s"), "p95"))),
        (f"output tokens/s{behind}", rate(row.get("output_tokens_per_s"))),
    )


def _rate(row: Row) -> float | None:
    return number(row.get("rate_per_s"))


def _load(row: Row) -> float | None:
    return number(row.get("concurrency")) or _rate(row)
