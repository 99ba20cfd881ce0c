"""What must be known beside the figures of a measurement, each once, with the condition at which it is worst."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import inf

from servewise.ask.bench_options import Asked
from servewise.ask.bench_rows import arrivals_of, cached_known, cached_share, prompt_tokens_mean
from servewise.caveats import Caveat
from servewise.measure.bench.enough import enough, half_widths
from servewise.measure.bench.measured import Measured
from servewise.measure.bench.saturated import client_saturated
from servewise.measure.self_test.kept import beyond_self_test

SHORT_RUN = 0.2  # of the window: an e2e p95 above it leaves edges that weigh
FEWEST = 20  # completed requests in a window below which there is no interval
COLD, WARM = 0.1, 0.5  # share of prompt tokens cached: at most where cold was meant, at least where warm was
BLURRED = 0.1  # of the finest time that is measured: bounds of clocks above it show
SHORT_ANSWERS = UNCOUNTED = 0.01
WIDE = 0.5  # of a mean: half of the interval of its repeats


def run_caveats(asked: Asked, groups: Sequence[Sequence[Measured]]) -> tuple[Caveat, ...]:
    """The caveats of all runs, by condition; of one code only the last condition's, which has the most load."""
    found: dict[str, Caveat] = {}
    for runs in groups:
        for each in _of(asked, runs):
            found[each.code] = replace(each, message=f"at {runs[0].condition}: {each.message}")
    return tuple(found.values())


def _of(asked: Asked, runs: Sequence[Measured]) -> Iterator[Caveat]:
    for run in runs:
        tokens = run.summary.output_tokens_per_s / run.summary.requests_per_s if run.summary.requests_per_s else 1.0
        yield from client_saturated(run.summary, run.sending, kernel=run.tally.kernel_stamped, tokens=tokens)
        yield from beyond_self_test(run.sending.most_open, run.summary.output_tokens_per_s)
        yield from _senders(run)
        yield from _window(run)
        if run.condition.is_open:
            yield from arrivals_of(run, asked.load, asked.options.seed).caveats
        if run.balance is not None and run.balance.verdict == "growing":
            yield Caveat("unstable", run.balance.reason, "a lower rate; latencies grow with the length of the run")
        mismatch = run.tally.prompt_mismatch()
        if mismatch is not None:
            yield from mismatch.caveats
    yield from _answers(runs)
    yield from _cache(asked, runs)
    yield from _repeats(asked, runs)


def _senders(run: Measured) -> Iterator[Caveat]:
    """Hosts that were lost, and clocks that are not known well enough to order what different hosts saw."""
    for share in (each for each in run.sending.hosts if each.end):
        message = (
            f"{share.host} lost workers in mid-run ({share.end}): {share.lost} requests under way are counted as lost, "
            "and from then on the load was less than asked for"
        )
        yield Caveat("sender-lost", message, "measure it again")
    bound_s = max((each.clock_bound_s for each in run.sending.hosts), default=0.0)
    finest_s, of = min((run.summary.ttft.p50, "TTFT p50"), (_between_s(run), "the mean time between requests"))
    if bound_s > BLURRED * finest_s > 0:
        message = (
            f"clocks of hosts are known within {bound_s * 1e3:.3g} ms, {bound_s / finest_s:.0%} of {of}: what they saw "
            "is ordered no finer than that; TTFT, TPOT and all durations are of one clock each, and are not touched"
        )
        yield Caveat("clocks-apart", message, "hosts with less delay to this one, or one host with more workers")


def _between_s(run: Measured) -> float:
    return 1 / run.summary.requests_per_s if run.summary.requests_per_s else inf


def _window(run: Measured) -> Iterator[Caveat]:
    summary = run.summary
    if summary.completed < FEWEST:
        message = f"{summary.completed} requests completed in the steady window: too few for an interval of one run"
        yield Caveat("too-few-requests", message, "a longer --duration, or more --requests")
    if run.window.settled is False:
        yield Caveat("not-steady", f"no steady state shows ({run.window.rule})", "a longer run, or more --warmup")
    if run.window.duration_s and summary.e2e.p95 > SHORT_RUN * run.window.duration_s:
        share = summary.e2e.p95 / run.window.duration_s
        message = f"an answer takes {share:.0%} of the steady window (end to end p95): its edges weigh"
        yield Caveat("short-run", message, "a longer --duration, or more --requests")


def _answers(runs: Sequence[Measured]) -> Iterator[Caveat]:
    completed = sum(each.tally.completed for each in runs)
    short = sum(each.tally.short for each in runs)
    if completed and short > SHORT_ANSWERS * completed:
        message = f"{short / completed:.0%} of the answers ended before as many tokens as were asked for"
        yield Caveat("short-answers", message, "a server that takes ignore_eos, or compare by the lengths in the rows")
    yield from _counts(runs, completed)
    failed = sum(each.tally.failed for each in runs)
    if failed:
        example = next(iter(next(each for each in runs if each.tally.failed).tally.examples.values()), "")
        message = f"{failed} of {failed + completed} requests failed and enter no latency, e.g. {example}"
        yield Caveat("failed-requests", message, "see outcomes")


def _counts(runs: Sequence[Measured], completed: int) -> Iterator[Caveat]:
    """Counts of output tokens that cannot be taken as they are."""
    long = sum(each.tally.long for each in runs)
    if long > UNCOUNTED * completed:
        message = f"{long / completed:.0%} of the answers hold more tokens, as they are counted, than were asked for"
        yield Caveat("long-answers", message, "is max_tokens kept? else the server's usage is wrong: see --tokenizer")
    by_events = sum(each.tally.counted_by().get("events", 0) for each in runs)
    if by_events > UNCOUNTED * completed:
        message = f"of {by_events / completed:.0%} of the answers the server counts no tokens: each event counts as one"
        yield Caveat("tokens-by-events", message, "turn its usage on (stream_options): events may hold several tokens")


def _cache(asked: Asked, runs: Sequence[Measured]) -> Iterator[Caveat]:
    shares_nothing = asked.load.prefix is None and asked.load.trace is None and not asked.load.file_prompts
    share, known = cached_share(runs), cached_known(runs)
    made = asked.load.conversations is None
    if asked.cache == "cold" and shares_nothing and made and known and share > COLD:
        message = f"the server says that {share:.0%} of the prompts were cached, where none was sent before"
        yield Caveat("prefix-cache-not-cold", message, "longer prompts: a chat template alone is shared by all")
    before = _sent_before(asked, runs)
    if asked.cache == "warm" and known and share < WARM * before:
        message = (
            f"the server says that only {share:.0%} of the prompts were cached, though {before:.0%} was sent before"
        )
        yield Caveat("prefix-cache-not-warm", message, "is its prefix cache on, and large enough?")


def _sent_before(asked: Asked, runs: Sequence[Measured]) -> float:
    """Of the prompt tokens of a warm run: their shared prefixes, or all where nothing is shared."""
    prefix, mean = asked.load.prefix, prompt_tokens_mean(runs)
    return 1.0 if prefix is None or not mean else min(prefix.share * prefix.tokens / mean, 1.0)


def _repeats(asked: Asked, runs: Sequence[Measured]) -> Iterator[Caveat]:
    within = asked.options.ci
    summaries = [each.summary for each in runs]
    if within is not None and not enough(summaries, within):
        widths = ", ".join(f"{name} +/- {width:.1%}" for name, width in half_widths(summaries).items())
        message = f"the intervals did not come within {within:.1%} in {len(runs)} repeats: {widths}"
        yield Caveat("interval-not-reached", message, "longer runs, or a quieter server")
    wide = {name: width for name, width in half_widths(summaries).items() if width > WIDE} if len(runs) > 1 else {}
    if within is None and wide:
        widths = ", ".join(f"{name} +/- {width:.0%}" for name, width in wide.items())
        message = f"{len(runs)} repeats leave a 95% interval so wide that their mean says little: {widths}"
        yield Caveat("repeats-differ", message, "three repeats or more (two: 12.7 standard errors), a quieter host")
