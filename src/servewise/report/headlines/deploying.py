"""Headlines of ``size`` and ``steptime``: what a deployment holds, and how long it steps."""

from __future__ import annotations

from servewise.answer import Answer
from servewise.report.headlines.headline import Headline, known
from servewise.report.reading import clean, rows, text
from servewise.report.tables.size import verdict
from servewise.report.wording import UNKNOWN, count, figure, rate, seconds
from servewise.report.wording import size as bytes_words


def size(answer: Answer) -> Headline:
    """Does it fit; weights, KV tokens, sequences."""
    result, conditions = answer.result, answer.conditions
    who = clean(f"{conditions.model or 'It'} {{}} on {conditions.hardware}")
    if result.get("fits") is False:
        short = bytes_words(result.get("short_by_bytes"))
        return Headline(f"{who.replace('{}', 'does not fit')}: {short} short on each accelerator.", good=False)
    numbers = known(
        ("weights on each accelerator", bytes_words(result.get("weight_bytes"))),
        ("KV tokens", count(result.get("kv_tokens"))),
        (f"sequences of {count(result.get('context_tokens'))} tokens at once", count(result.get("max_sequences"))),
    )
    return Headline(f"{who.replace('{}', 'fits')}." if verdict(result) != UNKNOWN else "", "", numbers)


def steptime(answer: Answer) -> Headline:
    """From what to what a step takes, and what binds it."""
    result = answer.result
    found = rows(result, "rows")
    if not found:
        return Headline("")
    first, last = found[0], found[-1]
    words = f"A step takes {seconds(first.get('step_s'))} at batch {count(first.get('batch'))}"
    if last is not first:
        words += f" and {seconds(last.get('step_s'))} at {count(last.get('batch'))}"
    bounds = list(dict.fromkeys(text(row.get("bound")) for row in found))
    detail = f"Bound by {', then '.join(filter(None, bounds))}." if any(bounds) else ""
    numbers = known(
        (f"tokens/s at batch {count(last.get('batch'))}", rate(last.get("tokens_per_s"))),
        (
            f"tokens/s at batch {count(first.get('batch'))}",
            rate(first.get("tokens_per_s")) if last is not first else UNKNOWN,
        ),
        ("ridge batch, ideal", figure(result.get("ridge_batch"))),
    )
    return Headline(words + ".", detail, numbers)
