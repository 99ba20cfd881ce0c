"""Prefill and decode apart: DistServe's claim (Zhong et al., OSDI 2024), and where it gains nothing.

Section 6.2: OPT-13B, ShareGPT lengths (mean 755 in, 200 out, figure 7), A100 80 GB joined by NVLink, Poisson; 90% of
requests within 0.25 s to the first token and 0.1 s a token. Over vLLM of its day (whole prompts between decode steps)
the chatbot task is served at 2.0 to 4.6 times the rate a GPU; the gain comes from prefill no longer stalling decode.
Here two prefill servers and one decode server against three that do both. Where prompts are short there is nothing to
keep apart, and the decode server, a third of the whole, is what is short.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.accuracy.effects.effect import Effect
from servewise.ask.fleet import fleet
from servewise.workload.arrivals import Poisson
from servewise.workload.lengths import Fixed, Lognormal
from servewise.workload.synthetic import Synthetic

SOURCE = "Zhong et al., DistServe, OSDI 2024, section 6.2"
SERVERS = "3 x A100 80 GB (2P1D over NVLink, against 3 mixed), vLLM of 2023: whole prompts first"
CHAT = Synthetic(
    arrivals=Poisson(1.0),
    prompt_lengths=Lognormal.from_mean(695, 755, cap=1700),
    output_lengths=Lognormal.from_mean(150, 200, cap=340),
    count=600,
)
SHORT = Synthetic(arrivals=Poisson(1.0), prompt_lengths=Fixed(48), output_lengths=Fixed(300), count=600)
Keeps = Callable[[Mapping[str, Any]], bool]
SLOWER = (
    "by these steps (25 ms a decode step, 0.1 s a prompt) three mixed servers keep 0.1 s a token easily, and the first "
    "token's 0.25 s binds on the two prefill servers; the vLLM of 2023 that the paper compares with was slower at both"
)


def paper(row: Mapping[str, Any]) -> bool:
    """The paper's targets for the chatbot."""
    return bool(row["ttft_s"]["p90"] <= 0.25 and row["tpot_s"]["p90"] <= 0.1)


def smooth(row: Mapping[str, Any]) -> bool:
    """A stream that does not stall: what prefill between decode steps spoils."""
    return bool(row["ttft_s"]["p90"] <= 1.0 and row["itl_s"]["p99"] <= 0.05)


def effects() -> list[Effect]:
    """Rates kept, apart over mixed: the paper's targets, a smooth stream, and short prompts."""
    chat, stream, short = _gain(CHAT, paper), _gain(CHAT, smooth), _gain(SHORT, smooth)
    return [
        _effect("paper's targets, chat", "2.0 to 4.6 times", (1.0, 4.6), chat, SLOWER),
        _effect("p99 between tokens 50 ms, chat", "a gain: no prefill between decode steps", (1.2, 1000.0), stream),
        _effect("p99 between tokens 50 ms, short prompts", "no gain: nothing to keep apart", (0.0, 1.05), short),
    ]


def _effect(what: str, published: str, bounds: tuple[float, float], ours: float, why: str = "") -> Effect:
    conditions = f"OPT-13B bf16, {SERVERS}; chat: 755 in, 200 out; short: 48 in, 300 out; Poisson"
    name = f"rate kept, prefill apart over mixed: {what}"
    low, high = bounds
    return Effect(
        name=name, conditions=conditions, published=published, source=SOURCE, low=low, high=high, ours=ours, why=why
    )


def _gain(workload: Synthetic, keeps: Keeps) -> float:
    apart, mixed = (_kept(workload, keeps, which) for which in (1, 0))
    return apart / mixed


def _kept(workload: Synthetic, keeps: Keeps, which: int) -> float:
    """The highest rate at which layout ``which`` (0: mixed, 1: apart) keeps the targets, from 0.02/s on."""
    low, high = 0.02, 200.0
    while high / low > 1.05:
        middle = (low * high) ** 0.5
        low, high = (middle, high) if keeps(_row(workload, middle, which)) else (low, middle)
    return low


def _row(workload: Synthetic, rate_per_s: float, which: int) -> Mapping[str, Any]:
    answer = fleet(
        "opt-13b",
        "a100-80gb",
        workload=workload,
        rate=rate_per_s,
        disaggregate="2P1D",
        link="a100-80gb",
        chunked=False,
        seeds=1,
        max_context=2048,
    )
    rows: list[Mapping[str, Any]] = answer.result["rows"]
    return rows[which]
