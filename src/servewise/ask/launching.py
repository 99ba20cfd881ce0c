"""A plan's recommendation as command lines and configs of the engines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from servewise.errors import UnknownName
from servewise.modelspec.catalogue import by_name
from servewise.plan.flags.every import TARGETS
from servewise.plan.flags.wanted import EngineLaunch, Wanted
from servewise.plan.planner import Planned
from servewise.plan.question import Question

OWN = ("vllm", "sglang", "trtllm", "llamacpp")


def targets_named(names: str | Iterable[str]) -> tuple[str, ...]:
    """The launch targets of those names: vllm, sglang, trtllm, llamacpp, kubernetes."""
    several = (names,) if isinstance(names, str) else tuple(names)
    for name in several:
        if name not in TARGETS:
            raise UnknownName("launch target", str(name), TARGETS, where="emit", hint=f"one of {', '.join(TARGETS)}")
    return tuple(dict.fromkeys(several))


def launches_of(
    question: Question, found: Planned, model: str, targets: tuple[str, ...], context: int | None
) -> dict[str, Any]:
    """``{engine: {argv, env, files, notes}}`` of the recommendation; empty where nothing is recommended.

    Without ``targets``: the engine that the plan was made for, and a Kubernetes manifest where that is vLLM.
    """
    if not found.ranking:
        return {}
    wanted = Wanted(
        candidate=found.ranking[0].candidate,
        model=model,
        longest_tokens=max(each.prompt_tokens + each.output_tokens for each in question.traffic.requests),
        replicas=found.costs[0].replicas,
        stated_context_tokens=context,
    )
    return {name: TARGETS[name](wanted).to_json() for name in targets or _usual(wanted.family)}


def launch_from(found: Mapping[str, Any], engine: str) -> EngineLaunch:
    """The launch that a result holds under ``launch``, as an object again."""
    row = found[engine]
    return EngineLaunch(
        engine=engine,
        argv=tuple(row["argv"]),
        env=dict(row["env"]),
        files=dict(row["files"]),
        notes=tuple(row["notes"]),
    )


def fetched_as(model: object, name: str) -> str:
    """What engines fetch the model by: its hub id where it is in the catalogue, else as it was given, or its name.

    They are given the folder of a checkpoint, where its config was named.
    """
    entry = by_name(name)
    if entry is not None and entry.hub:
        return entry.hub[0]
    if not isinstance(model, str):
        return name
    folder, slash, file = model.rpartition("/")
    return (folder or slash or ".") if file == "config.json" else model


def _usual(family: str) -> tuple[str, ...]:
    own = family if family in OWN else "vllm"
    return (own, "kubernetes") if own == "vllm" else (own,)
