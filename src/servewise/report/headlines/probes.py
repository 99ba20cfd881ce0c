"""Headlines of the probes and of the client's self-test."""

from __future__ import annotations

from servewise.answer import Answer
from servewise.report.captions import sentence
from servewise.report.headlines.headline import Headline, known
from servewise.report.reading import mapping, number, rows, text
from servewise.report.wording import UNKNOWN, count, figure, percent, times


def probe_kv(answer: Answer) -> Headline:
    """The cache changes no token, and how much faster it is."""
    found = rows(answer.result, "rows")
    if not found:
        return Headline("")
    last = found[-1]
    same = answer.result.get("all_tokens_identical") is True
    words = "The cache changes no token" if same else "Replies with and without the cache part"
    numbers = known(
        (f"positions for {count(last.get('tokens'))} tokens, no cache", count(last.get("positions_without_cache"))),
        ("with the cache", count(last.get("positions_with_cache"))),
        ("faster", times(last.get("speedup"))),
    )
    return Headline(f"{words}.", "", numbers, good=same)


def probe_policies(answer: Answer) -> Headline:
    """How many measured runs were predicted within 10%."""
    judged, within = number(answer.result.get("judged")), number(answer.result.get("within_10_percent"))
    if not judged or within is None:
        return Headline("")
    words = f"{within:.0f} of {judged:.0f} runs below saturation were predicted within 10%, p50 and p95 end to end."
    off = percent(answer.result.get("largest_error"))
    return Headline(words, "", known(("largest error", off)), good=within == judged)


def self_test(answer: Answer) -> Headline:
    """How wrong the client's own times are."""
    words = text(answer.result.get("statement"))
    return Headline(sentence(words) if words else "")


def probe_ops(answer: Answer) -> Headline:
    """What the machine reaches: bytes/s and FLOP/s."""
    result = answer.result
    machine = text(mapping(result.get("machine")).get("title"), "This machine")
    peaks = rows(result, "peaks")
    best = max(peaks, key=lambda row: number(row.get("flops_per_s")) or 0.0, default={})
    bandwidth, peak = number(result.get("bandwidth_bytes_per_s")), number(best.get("flops_per_s"))
    if bandwidth is None or not peak:
        return Headline("")
    words = f"{machine} reads {bandwidth / 1e9:,.3g} GB/s and reaches {peak / 1e12:,.3g} TFLOP/s"
    numbers = known(("FLOP a byte: where arithmetic binds", figure(peak / bandwidth) if bandwidth else UNKNOWN))
    return Headline(f"{words} in {text(best.get('dtype'), 'its best format')}.", "", numbers)
