"""What several engines cannot express, in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from servewise.batching.policies import Continuous, Dynamic, Static
from servewise.plan.flags.wanted import Wanted

TUNED = ("instruct", "chat", "-it", "thinking")


def comments(notes: Iterable[str]) -> list[str]:
    """``notes`` as comments of a script or of YAML, a line each: what breaks a line in a model's path or an
    accelerator's title would end the comment, and the rest of it would run.

    >>> comments(["a\\nrm x"])
    ['# a rm x']
    """
    return ["# " + "".join(each if each.isprintable() else " " for each in note) for note in notes]


def notes_for(wanted: Wanted, engine: str) -> Iterator[str]:
    """What a launch of ``engine`` leaves open of the plan."""
    deployment, policy = wanted.candidate.deployment, wanted.candidate.policy
    if "/" in wanted.model and not any(word in wanted.model.lower() for word in TUNED):
        yield f"{wanted.model} is the catalogue's checkpoint: name the one that you serve; a chat needs a tuned one."
    if wanted.family != engine:
        yield f"The plan was made for {deployment.engine}: {engine} schedules and sizes its cache in its own way."
    if isinstance(policy, Static | Dynamic):
        yield f"{engine} batches continuously: the plan's {policy.name} batching cannot be asked for, only its slots."
    elif isinstance(policy, Continuous) and policy.reserve_output and engine != "trtllm":
        yield "The plan reserves the KV of whole answers at admission, which cannot be asked for."
    if isinstance(policy, Continuous) and not policy.prefix_cache:
        yield "The plan counted no reuse of prefixes; the engine's prefix cache is left on, which only helps."
    if wanted.stated_context_tokens is None:
        yield (
            f"The longest request of the workload has {wanted.longest_tokens:,} tokens; longer ones than "
            f"{wanted.context_tokens:,} are refused."
        )
    if wanted.replicas > 1:
        yield f"Run {wanted.replicas} of these behind a router; the plan shares the load evenly among them."


def online_quantisation(wanted: Wanted, engine: str, formats: dict[str, str]) -> tuple[str | None, str]:
    """(the flag's value for weights that the engine quantises as it loads, or None; a note where it cannot)."""
    weights, stored = wanted.candidate.deployment.weights, wanted.candidate.deployment.model.weights
    if weights is None or weights.name == stored.name or weights.bits >= 16:
        return None, ""
    method = formats.get(weights.name)
    if method is not None:
        return (
            method,
            f"Weights are rounded to {weights} as they are loaded; calibrated ones keep more quality.",
        )
    return None, f"{engine} does not make {weights} weights of this checkpoint: name a checkpoint that is quantised so."
