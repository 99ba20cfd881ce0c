"""Headlines of ``speculate`` and ``prefix``."""

from __future__ import annotations

from servewise.answer import Answer
from servewise.report.headlines.headline import Headline, known
from servewise.report.reading import number, rows, text
from servewise.report.wording import UNKNOWN, count, dollars, figure, percent, times


def speculate(answer: Answer) -> Headline:
    """Does it pay, and with how many draft tokens."""
    result = answer.result
    gain, best = number(result.get("speedup")), count(result.get("best_k"))
    if gain is None:
        return Headline("")
    if gain <= 1:
        return Headline(f"Speculation does not pay: at best {times(gain)}.", good=False)
    words = f"Draft {best} tokens at a time: {times(gain)} the speed of plain decoding."
    made = next((row for row in rows(result, "rows") if row.get("k") == result.get("best_k")), {})
    return Headline(words, "", known(("tokens a verification", figure(made.get("tokens_per_verification")))))


def prefix(answer: Answer) -> Headline:
    """What share of the prompts can be reused, and what that saves."""
    result = answer.result
    share = percent(result.get("hit_rate"))
    broken = max(rows(result, "breaks"), key=lambda row: number(row.get("lost_tokens")) or 0.0, default={})
    where = f"token {count(broken.get('offset_tokens'))}" if number(broken.get("offset_tokens")) is not None else ""
    kind = text(broken.get("kind"))
    detail = f"Most is lost at {where}{f' ({kind})' if kind else ''}." if where else ""
    numbers = known(
        ("without a cache", dollars(result.get("cost_usd"))),
        ("with the cache", dollars(result.get("cost_with_cache_usd"))),
    )
    return Headline("" if share == UNKNOWN else f"{share} of the prompt tokens can be reused.", detail, numbers)
