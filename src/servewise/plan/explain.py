"""Why: what binds the winner, and in one sentence with numbers why each of the others is behind it."""

from __future__ import annotations

from servewise.metrics.slo import Bound, Slo
from servewise.plan.beyond import Beyond, Shown
from servewise.plan.candidates import Candidate
from servewise.plan.cost import Cost
from servewise.plan.ranking import Measure
from servewise.plan.weighing import Weighed
from servewise.units import format_seconds

SATURATED = 0.95  # of the knee: from here on it is the server's own limit that binds, not the SLO's
QUEUED = 0.2  # of the busy time


def tightest(found: Weighed, slo: Slo) -> tuple[Bound, float]:
    """The bound nearest to its limit at the highest rate, and its value over the limit."""
    shares = [(bound, bound.value(found.summary) / bound.limit_s) for bound in slo.bounds]
    known = [pair for pair in shares if pair[1] == pair[1]] or [(slo.bounds[0], 0.0)]
    return max(known, key=lambda pair: pair[1])


def binds(found: Weighed) -> str:
    """memory, slots, tokens, bandwidth, compute, communication or overhead at saturation; below it, slo."""
    if found.rate_per_s < SATURATED * found.knee.middle_per_s:
        return "slo"
    if found.binding.waits_for_memory > QUEUED:
        return "memory"
    if found.binding.waits_for_slots > QUEUED:
        return "slots"
    return "tokens" if found.binding.waits_for_tokens > QUEUED else found.binding.resource


def binding_sentence(found: Weighed, slo: Slo) -> str:
    """What binds, with the numbers that show it."""
    bound, _ = tightest(found, slo)
    value = format_seconds(bound.value(found.summary))
    at = f"{bound.metric}_{bound.percentile} is {value} of {format_seconds(bound.limit_s)}"
    steps = f"steps of {found.binding.mean_batch:.0f} sequences, mostly bound by {found.binding.resource}"
    share = found.rate_per_s / found.knee.middle_per_s if found.knee.middle_per_s else 0.0
    blocks, slots, tokens = (
        found.binding.waits_for_memory,
        found.binding.waits_for_slots,
        found.binding.waits_for_tokens,
    )
    reason = {
        "slo": f"the SLO binds at {share:.0%} of saturation: {at}; {steps}",
        "memory": f"KV memory binds: requests wait for blocks {blocks:.0%} of the time; {steps}",
        "slots": f"slots bind: requests wait for one {slots:.0%} of the time; {steps}",
        "tokens": f"the tokens of a step bind: prompts wait for their turn {tokens:.0%} of the time; {steps}",
    }
    return reason.get(binds(found), f"{found.binding.resource} binds at saturation: {steps}; {at}")


def winning_sentence(found: Weighed, cost: Cost, by: Measure, slo: Slo) -> str:
    """Why the first is first."""
    return f"{by.words}: {_measured(found.candidate, found.rate_per_s, cost, by)}; {binding_sentence(found, slo)}"


def losing_sentence(found: Weighed, cost: Cost, best: Weighed, best_cost: Cost, by: Measure, slo: Slo) -> str:
    """Why ``found`` is behind ``best``."""
    mine, first = (
        _measured(each.candidate, each.rate_per_s, of, by) for each, of in ((found, cost), (best, best_cost))
    )
    return f"{mine} against {first}{_factor(cost, best_cost, by)}; {binding_sentence(found, slo)}"


def beyond_sentence(beyond: Beyond, best: Weighed, best_cost: Cost, by: Measure, most_accelerators: int | None) -> str:
    """Why one that is not ranked is behind ``best``, the first: by its own rate, or by more than that could be."""
    cost, needed = beyond.cost, beyond.cost.accelerators
    if most_accelerators is not None and needed > most_accelerators:
        return f"{_SHOWN[beyond.shown]}{needed} accelerators are needed, and there are {most_accelerators}"
    mine = _measured(beyond.candidate, beyond.most_per_s, cost, by)
    first = _measured(best.candidate, best.rate_per_s, best_cost, by)
    return f"{_SHOWN[beyond.shown]}{mine} against {first}{_factor(cost, best_cost, by)}"


_SHOWN = {
    Shown.WEIGHED: "",
    Shown.BOUND: "at its bound, which no batch passes: ",
    Shown.SIMULATION: "at the most, as its simulation showed: ",
}


def _measured(candidate: Candidate, rate_per_s: float, cost: Cost, by: Measure) -> str:
    several = "s" if candidate.accelerators > 1 else ""
    carried = f"{rate_per_s:.3g} requests/s on {candidate.accelerators} accelerator{several}"
    if by.name == "usd_per_hour":
        price = "price unknown" if cost.usd_per_hour is None else f"${cost.usd_per_hour:,.2f}/h"
        return f"{price} for {cost.replicas} x ({carried})"
    if by.name == "usd_per_million_output_tokens":
        usd = cost.usd_per_million_output_tokens
        return ("price unknown" if usd is None else f"${usd:,.3g} per M output tokens") + f" ({carried})"
    if by.name == "accelerators_in_all":
        return f"{cost.accelerators} accelerators as {cost.replicas} x ({carried})"
    return f"{cost.rate_per_accelerator_per_s:.3g} requests/s per accelerator ({carried})"


def _factor(cost: Cost, best: Cost, by: Measure) -> str:
    """How many times worse, in words; nothing where either is not known."""
    mine, first = by.value(cost), by.value(best)
    if not mine or not first:
        return ""
    if by.name == "rate_per_accelerator_per_s":
        return f", {mine / first:.0%} of it"
    return f", {mine / first:.2f} times as much"
