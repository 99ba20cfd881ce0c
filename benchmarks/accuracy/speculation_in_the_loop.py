"""Speculation in the loop: over load, and published speed-ups. python -m benchmarks.accuracy.speculation_in_the_loop.

First simulated closed loops at batch 1 to 128, K = 1 to 7, with the batch at which each K turns to loss: a dense 8B, a
dense 70B, a mixture, and an 8B with the engine's own time of early 2025. Then the published rows with the share of
right sides of 1 and the errors, first as the estimator has them, then with the engine's own time fitted on some rows
and judged on others. Nothing of the estimator is tuned to them. Under a minute. Writes
benchmarks/results/speculation_in_the_loop.json.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.accuracy.published_speculation import (
    BY_K,
    SHORT_TOKENS,
    TABLE_3,
    TABLE_5,
    Judged,
    Published,
    fitted_host,
    implied_tokens,
    judged,
    published,
    summary,
)
from benchmarks.record import save, table
from servewise.ask.deploying import deploy
from servewise.batching.policies import Continuous
from servewise.batching.policies.policy import Policy
from servewise.batching.speculative.acceptance import Acceptance
from servewise.batching.speculative.policy import LengthMaker
from servewise.deployment.deployment import Deployment
from servewise.metrics.summary import summarise
from servewise.simulate.arrivals import ClosedArrivals
from servewise.simulate.replica import Beside
from servewise.simulate.run import simulate
from servewise.simulate.speculating.drafters import Drafter, DraftModel
from servewise.simulate.speculating.lengths import length_rows
from servewise.simulate.speculating.one_layer import EAGLE3_VOCABULARY, eagle
from servewise.simulate.speculating.speculation import Speculation, best, fixed
from servewise.steptime.api import calibrated_roofline
from servewise.steptime.estimator import Estimator
from servewise.techniques.speculation import acceptance_from_tokens
from servewise.workload.request import Request

BATCHES = (1, 2, 4, 8, 16, 32, 64, 128)
LENGTHS = range(1, 8)
PROMPT, OUTPUT = 512, 256
# EAGLE-3 for Llama-3.1-8B on MT-Bench, as vLLM logs it: https://github.com/vllm-project/vllm/issues/26191
MT_BENCH = Acceptance.of_survival((0.74, 0.54, 0.41, 0.31, 0.23, 0.17, 0.13))
ASSUMED = Acceptance((0.7,))
OLDER_TOKENS = 1.8  # EAGLE at K = 2 in vLLM of March 2025: https://github.com/vllm-project/vllm/pull/14464
MOST_BATCH = 512


@dataclass(frozen=True)
class Case:
    """A target with its drafter and what stands of it."""

    name: str
    target: Estimator
    drafter: Drafter
    acceptance: Acceptance

    def tpot_s(self, batch: int, length: LengthMaker | None) -> float:
        """Mean time per output token of ``batch`` clients in a closed loop, at least two requests each."""
        policy: Policy = Continuous(max(batch, 8), 8192)
        beside: Beside | None = None
        if length is not None:
            speculation = Speculation(self.target, self.drafter, self.acceptance, length)
            policy, beside = speculation.policy(Continuous(max(batch, 8), 8192)), speculation.beside
        requests = [Request(serial, 0.0, PROMPT, OUTPUT) for serial in range(max(16, 2 * batch))]
        run = simulate(ClosedArrivals(requests, batch), policy, self.target, beside=beside)
        return summarise(run.requests, run.steps, slots=run.slots).tpot.mean

    def crossing(self, k: int) -> int | None:
        """The least batch at which K = ``k`` loses in the closed form; None: at none up to ``MOST_BATCH``."""
        return next((batch for batch in range(1, MOST_BATCH + 1) if self.gain(batch, k) < 1), None)

    def gain(self, batch: int, k: int) -> float:
        """The closed form's speed-up half-way through the output."""
        context = batch * (PROMPT + OUTPUT // 2)
        return length_rows(self.target, self.drafter, self.acceptance.chances(k), batch, context)[k].speedup


def cases() -> list[Case]:
    """The dense 8B, the dense 70B and the mixture."""

    def case(name: str, target: Deployment, draft: Deployment, acceptance: Acceptance) -> Case:
        return Case(name, calibrated_roofline(target), DraftModel(calibrated_roofline(draft)), acceptance)

    small, large = deploy("llama-3.1-8b", "h100-sxm"), deploy("llama-3.1-70b", "h100-sxm", tp=4)
    mixture = deploy("qwen3-30b-a3b", "h100-sxm")
    beside = deploy("llama-3.2-1b", "h100-sxm", tp=4)
    older = deploy("llama-3.1-8b", "a100-80gb")
    kept = Acceptance((acceptance_from_tokens(OLDER_TOKENS, 2),))
    slow = DraftModel(calibrated_roofline(eagle(older)), host=fitted_host(_of(TABLE_5, "eagle3")))
    return [
        case("Llama-3.1-8B, 1 x H100, EAGLE-3", small, eagle(small, draft_vocabulary=EAGLE3_VOCABULARY), MT_BENCH),
        case("Llama-3.1-70B, 4 x H100, Llama-3.2-1B drafts", large, beside, ASSUMED),
        case("Qwen3-30B-A3B, 1 x H100, EAGLE-3", mixture, eagle(mixture, draft_vocabulary=EAGLE3_VOCABULARY), MT_BENCH),
        Case("Llama-3.1-8B, 1 x A100, EAGLE, vLLM of early 2025", calibrated_roofline(older), slow, kept),
    ]


def _of(source: str, method: str | None = None) -> list[Published]:
    """The published rows of a source, and of a method, whose acceptance is known."""
    return [each for each in published() if each.known and source in each.source and method in (None, each.method)]


def over_load(case: Case) -> dict[str, Any]:
    """Simulated speed-ups by batch and K, with K by the estimator beside them, and where each K turns to loss."""
    rows = []
    for batch in BATCHES:
        plain_s = case.tpot_s(batch, None)
        gains = {k: plain_s / case.tpot_s(batch, fixed(k)) for k in LENGTHS}
        adapted = plain_s / case.tpot_s(batch, best(case.target, case.drafter, case.acceptance, max(LENGTHS)))
        forms = {k: case.gain(batch, k) for k in LENGTHS}
        rows.append({"batch": batch, "speedup": gains, "best": adapted, "closed_form": forms})
    return {"case": case.name, "rows": rows, "loses_from_batch": {k: case.crossing(k) for k in LENGTHS}}


def blocks() -> list[tuple[str, str, list[Judged]]]:
    """(what is judged, what was fitted on other rows, the rows as predicted)."""
    rows = published()
    known = [each for each in rows if each.known]
    mtp = [each for each in rows if each.method == "mtp"]
    short = [each for each in mtp if each.weights == "int4" and each.context == SHORT_TOKENS]
    long = [each for each in mtp if each.weights == "int4" and each.context > SHORT_TOKENS]
    other = [each for each in mtp if each.weights == "nvfp4"]

    found = [(_short(source), "", judged(_of(source))) for source in dict.fromkeys(each.source for each in known)]
    by_k = fitted_host(_of(BY_K, "eagle3"))
    pass_ms = f"{1e3 * by_k.pass_s:.2f} ms a pass, of EAGLE-3 at K = 2 to 7"
    found += [(f"{_short(source)}, EAGLE", pass_ms, judged(_of(source, "eagle"), by_k)) for source in (BY_K,)]
    found += [(_short(each), pass_ms, judged(_of(each), by_k)) for each in ("pull/16937", "pull/24343")]
    for source in (TABLE_3, TABLE_5):
        host = fitted_host(_of(source, "eagle3"))
        words = f"{1e3 * host.pass_s:.2f} ms a pass, {1e3 * host.sequence_s:.2f} a sequence, of EAGLE-3"
        found.append((f"{_short(source)}, EAGLE", words, judged(_of(source, "eagle"), host)))
    tokens = implied_tokens(short)
    words = f"{tokens:.2f} tokens a verification, of AWQ at short contexts"
    found += [
        (f"Qwen3.5-397B MTP, {name}", words, judged(each, tokens=tokens))
        for name, each in (("AWQ, short contexts: the fit", short), ("NVFP4", other), ("AWQ, 16k and longer", long))
    ]
    return found


def _short(source: str) -> str:
    return source.removeprefix("https://").removeprefix("github.com/").removeprefix("arxiv.org/abs/")


def main() -> None:
    loaded = [over_load(case) for case in cases()]
    for each in loaded:
        print(f"\n{each['case']}: speed-up of simulated TPOT by K; the closed form loses from batch")
        rows = [[row["batch"], *row["speedup"].values(), row["best"]] for row in each["rows"]]
        table(("batch", *(f"K={k}" for k in LENGTHS), "K by load"), rows)
        print("loses from", {f"K={k}": batch or f"> {MOST_BATCH}" for k, batch in each["loses_from_batch"].items()})
    print("\npublished speed-ups: predicted against published")
    judgements = blocks()
    columns = (
        "rows",
        "right_side",
        "losses",
        "losses_told",
        "median_error",
        "p90_error",
        "worst_error",
        "signed_median",
    )
    summaries = [(what, fit, summary(found)) for what, fit, found in judgements]
    table(("judged", "fitted on others", *columns), [[a, b, *(each[c] for c in columns)] for a, b, each in summaries])
    save("speculation_in_the_loop", {"over_load": loaded, "published": [_kept(*each) for each in judgements]})


def _kept(what: str, fit: str, found: Sequence[Judged]) -> dict[str, Any]:
    rows = [
        {name: value for name, value in asdict(each.row).items() if name not in ("source", "note", "tokens")}
        | {"predicted": round(each.predicted, 3)}
        for each in found
    ]
    return {"judged": what, "fitted_on_others": fit, **summary(found), "rows_predicted": rows}


if __name__ == "__main__":
    main()
