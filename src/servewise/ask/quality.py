"""What does a quantised build change, and what does it gain? Two servers, the same prompts, side by side."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from servewise.answer import Answer
from servewise.ask.bench_options import BenchOptions, asked
from servewise.ask.numbers import whole
from servewise.ask.rows import measured_row
from servewise.caveats import Caveat
from servewise.conditions import Conditions
from servewise.errors import InputError, RunFailed
from servewise.measure.ask import Ask
from servewise.measure.drive.drive import drive
from servewise.measure.drive.terms import Terms
from servewise.measure.exchange import Exchange
from servewise.measure.load.bodies import Form
from servewise.measure.load.fixed import one_by_one
from servewise.measure.load.prompt import Prompt
from servewise.measure.load.prompt_file import FileAsks, FilePrompt
from servewise.measure.outcome import Outcome
from servewise.measure.quality.agreement import Agreement, agreement
from servewise.measure.quality.passages import built_in_prompts
from servewise.measure.quality.summary import summary
from servewise.measure.recording import Recorder
from servewise.measure.target import Target
from servewise.metrics.summary import summarise
from servewise.version import __version__
from servewise.workload.request import Request

PROMPTS, OUTPUT, TOP = 32, 64, 5
Progress = Callable[[int, int], None]


NOT_TAKEN = (
    "rate",
    "trace",
    "sessions",
    "shared_prefix",
    "duration",
    "ci",
    "slo",
    "search",
    "max_in_flight",
    "run_dir",
    "executor",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One of the two servers: where it is, and what the user calls its build (``bf16``, ``q4_0``)."""

    target: Target
    precision: str


def quality(
    a: Compared,
    b: Compared,
    *,
    hardware: str,
    prompts: Sequence[FilePrompt] | None = None,
    count: int = PROMPTS,
    output_tokens: int = OUTPUT,
    concurrency: int = 1,
    seed: int = 0,
    progress: Progress | None = None,
) -> Answer:
    """Agreement of ``b`` with ``a``, greedy and with five logprobs a token, and the speed of both while it was asked.

    ``prompts`` None: ``count`` of the built-in ones. Each server gets all of them, ``concurrency`` at a time, one
    server after the other. Raises RunFailed where no prompt was answered by both.
    """
    number = whole(count, "prompts", most=100_000)
    given = tuple(prompts[:number]) if prompts else tuple(FilePrompt(Prompt(text)) for text in built_in_prompts(number))
    whole(output_tokens, "output tokens", most=1_000_000)
    streams = whole(concurrency, "concurrency", most=100_000)
    first, second = (_answers(each, given, output_tokens, streams, progress, half) for half, each in enumerate((a, b)))
    sides = first, second
    found = [pair for serial in range(len(given)) if (pair := _pair(first, second, serial)) is not None]
    if not found:
        raise RunFailed(f"no prompt was answered by both servers ({_example(*sides)})")
    return Answer(
        command="bench-quality",
        conditions=Conditions(
            hardware=hardware,
            load=f"closed loop of {streams} stream{'s' if streams > 1 else ''}, one server after the other",
            lengths=f"{len(given)} prompts, up to {output_tokens} out",
            precision=f"{a.precision} against {b.precision}",
            model=a.target.model if a.target.model == b.target.model else f"{a.target.model}, {b.target.model}",
            policy="greedy",
            version=__version__,
        ),
        result={
            "rows": [_row(each, side) for each, side in zip((a, b), sides, strict=True)],
            "quality": summary(found, seed),
            "answered_by_both": len(found),
            "pairs": [_pair_json(each) for each in found],
        },
        caveats=tuple(_caveats(found, len(given), *sides)),
    )


def quality_asked(
    url: str, options: BenchOptions, other_url: str, other: BenchOptions, *, progress: Progress | None = None
) -> Answer:
    """``quality`` with what ``bench`` was given: ``requests`` prompts (or the file's), the first of ``concurrency``.

    Options of a load that has no place here are refused.
    """
    for name in NOT_TAKEN:
        if getattr(options, name) is not None:
            what = "is an option of a load, and quality is asked for"
            raise InputError(what, where=name.replace("_", "-"), hint="leave it out, or --quality-against")
    first, second = asked(url, options), asked(other_url, other)
    streams = options.concurrency if isinstance(options.concurrency, int) else (options.concurrency or (1,))[0]
    return quality(
        Compared(target=first.target, precision=options.precision),
        Compared(target=second.target, precision=other.precision),
        hardware=options.hardware,
        prompts=first.load.file_prompts or None,
        count=options.requests or len(first.load.file_prompts) or PROMPTS,
        output_tokens=round(first.load.output_tokens.mean),
        concurrency=streams,
        seed=options.seed,
        progress=progress,
    )


Side = dict[int, Exchange]


def _answers(
    server: Compared, prompts: tuple[FilePrompt, ...], output: int, streams: int, progress: Progress | None, half: int
) -> Side:
    """Every exchange with one server, by its prompt's place."""
    form = Form(model=server.target.model, api=server.target.api, ignore_eos=False, logprobs=TOP)
    make, found = FileAsks(prompts, form), dict[int, Exchange]()
    asks: list[Ask] = [make(Request(place, 0.0, 1, output, ())) for place in range(len(prompts))]

    def ended(exchange: Exchange) -> None:
        found[exchange.ask.serial] = exchange
        if progress is not None:
            progress(half * len(prompts) + len(found), 2 * len(prompts))

    drive(
        one_by_one(asks, streams),
        server.target,
        start_s=time.monotonic(),
        on_end=ended,
        terms=Terms(keep_text=True, keep_logprobs=True),
    )
    return found


def _pair(a: Side, b: Side, serial: int) -> Agreement | None:
    pair = a.get(serial), b.get(serial)
    if any(each is None or each.outcome is not Outcome.COMPLETED for each in pair):
        return None
    assert pair[0] is not None
    assert pair[1] is not None
    return agreement(pair[0], pair[1])


def _row(server: Compared, side: Side) -> dict[str, Any]:
    """The speed of one server over its prompts."""
    recorder = Recorder()
    for exchange in sorted(side.values(), key=lambda each: each.end_s):
        recorder.add(exchange)
    row = measured_row(summarise(recorder.columns), outcomes=dict(recorder.outcomes))
    return {"url": server.target.origin, "model": server.target.model, "precision": server.precision} | row


def _pair_json(pair: Agreement) -> dict[str, Any]:
    return {
        "unit": pair.unit,
        "equal": pair.equal,
        "length": pair.length,
        "first_difference": pair.first_difference,
        "kl_low_nats": sum(each.kl_low for each in pair.divergences) / len(pair.divergences)
        if pair.divergences
        else None,
    }


def _caveats(found: Sequence[Agreement], wanted: int, *sides: Side) -> list[Caveat]:
    caveats = []
    if any(each.divergences for each in found):
        message = (
            "KL is over the tokens that both servers returned with a probability, all others as one: a lower bound; "
            "no upper bound follows from such lists, the total variation has both"
        )
        caveats.append(Caveat("kl-lower-bound", message, "`servewise probe quantise` sees whole distributions"))
    else:
        message = "not both servers return logprobs in this API: tokens and their probabilities are not compared"
        cure = "another --api, or a server that returns logprobs"
        caveats.append(Caveat("no-logprobs", message, cure))
    if len(found) < wanted:
        message = f"{wanted - len(found)} of {wanted} prompts were not answered by both ({_example(*sides)})"
        caveats.append(Caveat("failed-requests", message, "see outcomes"))
    message = "two runs of one build may part too, where a batch changes the order of its sums"
    caveats.append(Caveat("greedy-ties", message, "compare a build with itself first: give its URL twice"))
    return caveats


def _example(*sides: Side) -> str:
    failed = (each for side in sides for each in side.values() if each.outcome is not Outcome.COMPLETED)
    first = next(failed, None)
    return "the answers hold neither tokens nor text" if first is None else f"{first.outcome.value}: {first.reason}"
