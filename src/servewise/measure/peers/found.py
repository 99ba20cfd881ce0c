"""What was read from another client's file: runs, with what that client does not do as we do."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from servewise.caveats import Caveat
from servewise.conditions import Conditions
from servewise.metrics.percentiles import Percentiles
from servewise.metrics.sample import EMPTY, percentiles
from servewise.metrics.summary import RunSummary
from servewise.records.columns import RequestColumns

NOT_STATED = "not stated"
# Mean TTFT error [ms] by streams against a server with an exact schedule, client and server on 2 cores (2026-11).
TTFT_ERROR_MS: Mapping[str, Mapping[int, float]] = {
    "vLLM bench serve": {1: 1.3, 32: 5.6, 128: 24, 256: 69, 1024: 453},
    "GuideLLM": {1: 0.9, 32: 2.8, 128: 11, 256: 55, 1024: 259},
    "AIPerf": {1: 2.8, 32: 13.6, 128: 32, 256: 75, 1024: 229},
    "llama-benchy": {1: 1.9, 32: 14.9, 128: 39, 256: 111, 1024: 567},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerRun:
    """One run of another client. ``requests`` where its file keeps them whole, else ``told`` is its summary.

    ``itl_known`` is False where the requests have a first and a last token time and none between. ``conditions`` say
    "not stated" for what such a file does not hold.
    """

    client: str
    conditions: Conditions
    requests: RequestColumns
    told: RunSummary | None = None
    concurrency: int | None = None
    rate_per_s: float | None = None
    itl_known: bool = True
    caveats: tuple[Caveat, ...] = ()


def conditions(
    *, model: str | None, load: str, lengths: str, hardware: str | None = None, precision: str | None = None
) -> Conditions:
    """Conditions as far as a file has them."""
    return Conditions(
        hardware=hardware or NOT_STATED, precision=precision or NOT_STATED, load=load, lengths=lengths, model=model
    )


def load_words(concurrency: int | None, rate_per_s: float | None) -> str:
    """The load as our own runs word it."""
    if concurrency is not None and rate_per_s is None:
        return f"{concurrency} stream{'s' if concurrency != 1 else ''}"
    if rate_per_s is None:
        return "all at once"
    return f"{rate_per_s:g} requests/s" + (f", at most {concurrency} at once" if concurrency is not None else "")


def lengths_words(prompt_tokens: float, output_tokens: float) -> str:
    """Mean lengths in words."""
    if math.isnan(prompt_tokens) or math.isnan(output_tokens):
        return NOT_STATED
    return f"mean {prompt_tokens:.4g} tokens in, {output_tokens:.4g} out"


def common_caveats(client: str, streams: int | None) -> tuple[Caveat, ...]:
    """What holds of every result of ``client``."""
    errors = TTFT_ERROR_MS[client]
    at = max((each for each in errors if each <= (streams or 1)), default=1)
    clock = (
        f"{client} stamps requests before they leave and answers after they are parsed: on 2 cores its mean TTFT was "
        f"{errors[at]:g} ms off at {at} stream{'s' if at > 1 else ''}"
    )
    checks = f"{client} counts a stream that was cut short, or that held an error, as a success"
    return (
        Caveat("peer-clock", clock, "measure with servewise bench, which stamps at the socket"),
        Caveat("peer-success", checks, "look into the server's log for errors"),
    )


ITL_PER_EVENT = Caveat(
    "peer-itl",
    "gaps are between events, which may hold several tokens each; the client calls them per token",
    "compare TPOT, which is made here of token counts",
)
NO_REQUESTS = Caveat(
    "peer-summary",
    "the file holds no requests: its figures are the client's own, without intervals, TPOT as if the first event held "
    "one token and the stream ended with the last",
    "save the requests too (vLLM: --save-detailed; AIPerf: profile_export.jsonl)",
)


def of_values(values_s: list[float]) -> Percentiles:
    """Percentiles of plain values [s]."""
    return percentiles(np.array([each for each in values_s if math.isfinite(each)]))


def of_means(n: int, *, mean: float, p50: float, p90: float, p95: float, p99: float) -> Percentiles:
    """Percentiles as a client said them [s], without intervals; those that it did not say are NaN."""
    if all(math.isnan(each) for each in (mean, p50, p90, p95, p99)):
        return EMPTY
    return Percentiles(mean=mean, p50=p50, p90=p90, p95=p95, p99=p99, n=n)


def told(
    *,
    completed: int,
    failed: int,
    duration_s: float = math.nan,
    requests_per_s: float = math.nan,
    output_tokens_per_s: float = math.nan,
    prompt_tokens: int = 0,
    output_tokens: int = 0,
    ttft: Percentiles = EMPTY,
    tpot: Percentiles = EMPTY,
    itl: Percentiles = EMPTY,
    e2e: Percentiles = EMPTY,
) -> RunSummary:
    """A summary of what a client said of itself; what it did not say is unknown."""
    return RunSummary(
        ttft=ttft,
        tpot=tpot,
        itl=itl,
        e2e=e2e,
        ttft_from_sent=ttft,
        utilisation=math.nan,
        requests_per_s=requests_per_s,
        output_tokens_per_s=output_tokens_per_s,
        goodput_per_s=None,
        completed=completed,
        rejected=0,
        unfinished=0,
        failed=failed,
        preemptions=0,
        duration_s=duration_s,
        prompt_tokens=prompt_tokens,
        output_tokens=output_tokens,
    )


def with_rates(summary: RunSummary, *, requests_per_s: float, output_tokens_per_s: float) -> RunSummary:
    """``summary`` of requests whose times do not tell the rates, with the client's own."""
    return replace(summary, requests_per_s=requests_per_s, output_tokens_per_s=output_tokens_per_s, ci95={})
