"""Headline of ``plan``."""

from __future__ import annotations

from servewise.answer import Answer
from servewise.report.captions import sentence
from servewise.report.headlines.headline import Headline, Number, known
from servewise.report.reading import Row, mapping, percentile, rows, text
from servewise.report.tables.plan import title_of
from servewise.report.wording import UNKNOWN, dollars, quantity, rate, seconds

_LATENCIES = ("ttft", "tpot", "itl", "e2e")


def plan(answer: Answer) -> Headline:
    """What to serve it on and what binds; or the closest, where nothing meets the target."""
    result = answer.result
    recommended = mapping(result.get("recommendation"))
    if not recommended:
        return _closest(result)
    winner = next(iter(rows(result, "ranking")), {})
    numbers = _numbers(recommended) or _plan_numbers(winner)
    deployment = recommended.get("deployment") or winner.get("deployment")
    words = text(recommended.get("text")) or f"Serve it on {title_of(deployment)}."
    binds = text(recommended.get("binds")) or text(winner.get("bound"))
    return Headline(sentence(words), _binding(binds), numbers)


def _binding(words: str) -> str:
    if not words:
        return ""
    return sentence(words) if "binds" in words else f"What binds: {sentence(words)}"


def _closest(result: Row) -> Headline:
    closest = result.get("closest")
    words = text(mapping(closest).get("text")) or (title_of(closest) if closest else "")
    deployment = mapping(closest).get("deployment")
    words = words if words not in ("", UNKNOWN) else (title_of(deployment) if deployment else "")
    detail = f"The closest: {sentence(words)}" if words else ""
    return Headline("No deployment meets the target.", detail, _numbers(mapping(closest)), good=False)


def _numbers(found: Row) -> tuple[Number, ...]:
    """Three of them: the first rate, the first cost and the first latency, then the others in order."""
    given = rows(found, "numbers")
    firsts = [next((each for each in given if each.get("unit") == unit), None) for unit in ("per_s", "usd", "s")]
    chosen = [each for each in firsts if each is not None]
    chosen += [each for each in given if not any(each is other for other in chosen)]
    return tuple(Number(_label(each), quantity(each.get("value"), each.get("unit"))) for each in chosen[:3])


def _label(found: Row) -> str:
    first, _, rest = text(found.get("label")).partition(" ")
    return f"{first.upper()} {rest}".strip() if first in _LATENCIES else text(found.get("label"))


def _plan_numbers(winner: Row) -> tuple[Number, ...]:
    return known(
        ("requests/s within the target", rate(winner.get("max_rate_per_s"))),
        ("per million output tokens", dollars(winner.get("usd_per_million_output_tokens"))),
        ("TTFT p95", seconds(percentile(winner.get("ttft_s"), "p95"))),
    )
