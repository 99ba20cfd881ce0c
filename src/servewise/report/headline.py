"""The first thing to read of an answer: the sentence, what binds, and the few numbers that matter."""

from __future__ import annotations

from dataclasses import dataclass

from servewise.answer import Answer
from servewise.report.captions import sentence
from servewise.report.reading import Row, clean, items, mapping, number, percentile, rows, text
from servewise.report.tables.compare import metric_name
from servewise.report.tables.plan import title_of
from servewise.report.tables.size import verdict
from servewise.report.wording import UNKNOWN, count, dollars, figure, percent, quantity, rate, seconds, size, times

_NUMBERS = 3
_LATENCIES = ("ttft", "tpot", "itl", "e2e")


@dataclass(frozen=True, slots=True)
class Number:
    """A number with its unit, under its label."""

    label: str
    value: str


@dataclass(frozen=True, slots=True)
class Headline:
    """``text`` is the answer, ``detail`` what binds or why; ``good`` is False where nothing meets the aim."""

    text: str
    detail: str = ""
    numbers: tuple[Number, ...] = ()
    good: bool = True


def headline(answer: Answer) -> Headline | None:
    """The headline of an answer, None for a command that has none."""
    found = _BY_COMMAND.get(answer.command)
    made = found(answer) if found else None
    return made if made and made.text else None


def _plan(answer: Answer) -> Headline:
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
    return tuple(Number(_label(each), quantity(each.get("value"), each.get("unit"))) for each in chosen[:_NUMBERS])


def _label(found: Row) -> str:
    first, _, rest = text(found.get("label")).partition(" ")
    return f"{first.upper()} {rest}".strip() if first in _LATENCIES else text(found.get("label"))


def _plan_numbers(winner: Row) -> tuple[Number, ...]:
    pairs = (
        ("requests/s within the target", rate(winner.get("max_rate_per_s"))),
        ("per million output tokens", dollars(winner.get("usd_per_million_output_tokens"))),
        ("TTFT p95", seconds(percentile(winner.get("ttft_s"), "p95"))),
    )
    return _known(pairs)


def _known(pairs: tuple[tuple[str, str], ...]) -> tuple[Number, ...]:
    return tuple(Number(label, value) for label, value in pairs if value != UNKNOWN)


def _size(answer: Answer) -> Headline:
    result, conditions = answer.result, answer.conditions
    who = clean(f"{conditions.model or 'It'} {{}} on {conditions.hardware}")
    if result.get("fits") is False:
        short = size(result.get("short_by_bytes"))
        return Headline(f"{who.replace('{}', 'does not fit')}: {short} short on each accelerator.", good=False)
    pairs = (
        ("weights on each accelerator", size(result.get("weight_bytes"))),
        ("KV tokens", count(result.get("kv_tokens"))),
        (f"sequences of {count(result.get('context_tokens'))} tokens at once", count(result.get("max_sequences"))),
    )
    return Headline(f"{who.replace('{}', 'fits')}." if verdict(result) != UNKNOWN else "", "", _known(pairs))


def _steptime(answer: Answer) -> Headline:
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
    return Headline(words + ".", detail, _known((("ridge batch", figure(result.get("ridge_batch"))),)))


def _simulate(answer: Answer) -> Headline:
    result = answer.result
    knees = [
        f"{text(knee.get('policy'))} {rate(low)} to {rate(high)}"
        for knee in rows(result, "knees")
        if (low := number(knee.get("low_per_s"))) is not None and (high := number(knee.get("high_per_s"))) is not None
    ]
    per = "step" if result.get("unit_step") is True else "s"
    return Headline(f"Saturation, in requests/{per}: {', '.join(knees)}." if knees else "")


def _bench(answer: Answer) -> Headline:
    """Of a search: the highest load that keeps the SLO, and between what the knee lies."""
    search = mapping(answer.result.get("search"))
    best, ends = number(search.get("best")), items(search.get("knee"))
    if best is None or len(ends) != 2:
        return Headline("")
    unit = "streams" if search.get("of") == "concurrency" else "requests/s"
    if best == 0:
        return Headline("No load that was tried keeps the SLO.", good=False)
    high = f"and {figure(ends[1])}" if number(ends[1]) is not None else "and beyond what was tried"
    return Headline(f"{figure(best)} {unit} keep the SLO.", f"The knee lies between {figure(ends[0])} {high} {unit}.")


def _speculate(answer: Answer) -> Headline:
    result = answer.result
    gain, best = number(result.get("speedup")), count(result.get("best_k"))
    if gain is None:
        return Headline("")
    if gain <= 1:
        return Headline(f"Speculation does not pay: at best {times(gain)}.", good=False)
    return Headline(f"Draft {best} tokens at a time: {times(gain)} the speed of plain decoding.")


def _prefix(answer: Answer) -> Headline:
    result = answer.result
    share = percent(result.get("hit_rate"))
    pairs = (
        ("without a cache", dollars(result.get("cost_usd"))),
        ("with the cache", dollars(result.get("cost_with_cache_usd"))),
    )
    return Headline("" if share == UNKNOWN else f"{share} of the prompt tokens can be reused.", "", _known(pairs))


def _study(answer: Answer) -> Headline:
    result = answer.result
    verdicts = [row.get("agrees") for table in rows(result, "tables") for row in rows(table, "rows")]
    judged = [each for each in verdicts if isinstance(each, bool)]
    agree = result.get("all_agree") is True
    if not judged and not agree:
        return Headline("")
    left = len(verdicts) - len(judged)
    detail = f"{left} more are shown without a verdict." if left else ""
    return Headline(f"{sum(judged)} of {len(judged)} figures of the study agree.", detail, good=agree)


def _compare(answer: Answer) -> Headline:
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
    return Headline(first, " ".join(each for each in said if each and each is not first), (), not (failed or refuted))


def _claim(row: Row) -> str:
    at = f" at {text(row.get('condition'))}" if row.get("condition") else ""
    pair = [number(each) for each in items(row.get("ci95"))]
    reach = f" ({times(pair[0])} to {times(pair[1])})" if len(pair) == 2 and None not in pair else ""
    name = metric_name(row.get("metric"))
    claimed, shown = times(row.get("claimed")), times(row.get("speedup"))
    return f"The claimed {claimed} of {name}{at} is {text(row.get('verdict'))}: {shown}{reach}."


def _probe_kv(answer: Answer) -> Headline:
    found = rows(answer.result, "rows")
    if not found:
        return Headline("")
    last = found[-1]
    same = answer.result.get("all_tokens_identical") is True
    words = "The cache changes no token" if same else "Replies with and without the cache part"
    pairs = (
        (f"positions for {count(last.get('tokens'))} tokens, no cache", count(last.get("positions_without_cache"))),
        ("with the cache", count(last.get("positions_with_cache"))),
        ("faster", times(last.get("speedup"))),
    )
    return Headline(f"{words}.", "", _known(pairs), good=same)


def _probe_policies(answer: Answer) -> Headline:
    judged, within = number(answer.result.get("judged")), number(answer.result.get("within_10_percent"))
    if not judged or within is None:
        return Headline("")
    words = f"{within:.0f} of {judged:.0f} runs below saturation were predicted within 10%, p50 and p95 end to end."
    off = percent(answer.result.get("largest_error"))
    return Headline(words, "", _known((("largest error", off),)), good=within == judged)


def _self_test(answer: Answer) -> Headline:
    words = text(answer.result.get("statement"))
    return Headline(sentence(words) if words else "")


_BY_COMMAND = {
    "plan": _plan,
    "size": _size,
    "steptime": _steptime,
    "simulate": _simulate,
    "bench": _bench,
    "speculate": _speculate,
    "prefix": _prefix,
    "study": _study,
    "compare": _compare,
    "probe-kv": _probe_kv,
    "probe-policies": _probe_policies,
    "self-test": _self_test,
}
