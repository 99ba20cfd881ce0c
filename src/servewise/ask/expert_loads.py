"""How experts are called on and where they lie, from options: a distribution or a file of counts, and EPLB's copies."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

from servewise.ask.numbers import whole
from servewise.deployment.deployment import Deployment
from servewise.deployment.expert_counts import load_counts
from servewise.deployment.expert_load import EVEN, USUAL, Counted, Drawn, ExpertLoad
from servewise.deployment.validate import check_experts
from servewise.errors import InputError, UnknownName
from servewise.modelspec.spec import ModelSpec

ExpertLoadLike = str | Path | ExpertLoad
LEAST, MOST = 1e-3, 1e6  # below, one expert has all; above, chance alone makes a difference
MOST_COPIES = 65_536
HINT = "even, dirichlet:C (0.46: as DeepSeek-R1), or a .json or .csv file of tokens by layer and expert"


def expert_load_named(given: ExpertLoadLike | None) -> ExpertLoad:
    """The load of ``even``, ``dirichlet:0.46`` or a file; None: the usual one. Raises InputError for anything else.

    >>> expert_load_named("dirichlet:inf") == expert_load_named("even")
    True
    """
    if given is None:
        return USUAL
    if isinstance(given, Drawn | Counted):
        return given
    text = str(given).strip()
    kind, colon, value = text.partition(":")
    if text.lower() == "even":
        return EVEN
    if colon and kind.lower() == "dirichlet":
        return Drawn(_concentration(value))
    if Path(text).suffix or any(mark in text for mark in "/\\"):
        return load_counts(text)
    raise UnknownName("expert load", text, ("even", "dirichlet:0.46"), where="expert_load", hint=HINT)


def with_experts(deployment: Deployment, load: ExpertLoadLike | None, redundant: int | None) -> Deployment:
    """``deployment`` with its experts so popular, and so many copies that EPLB places; None: as it is.

    Raises InputError where no experts are spread over ranks, and for what does not fit the model or the ranks.
    """
    for name, value in {"expert_load": load, "redundant_experts": redundant}.items():
        if value is not None:
            _check_spread(deployment, name)
    found = replace(
        deployment,
        parallelism=replace(deployment.parallelism, redundant_experts=copies_of(redundant)),
        expert_load=expert_load_named(load),
    )
    check_experts(found)
    return found


def copies_of(redundant: int | None) -> int | None:
    """Copies that EPLB adds; None: there is no EPLB."""
    return None if redundant is None else whole(redundant, "redundant_experts", least=0, most=MOST_COPIES)


def check_ep(model: ModelSpec, spread: tuple[bool, ...], **given: object) -> None:
    """Refuse (InputError) to spread the experts of a dense model, and what is ``given`` where none are ``spread``."""
    if True in spread:
        _check_routed(model, "ep")
    for name in (name for name, value in given.items() if value is not None and True not in spread):
        raise InputError("is of experts that are spread over ranks, and none are", where=name, hint="give --ep")


def _check_routed(model: ModelSpec, name: str) -> None:
    if not any(group.feed_forward.experts for group in model.layers):
        raise InputError(f"{model.name} has no routed experts", where=name, hint="leave it out")


def _check_spread(deployment: Deployment, name: str) -> None:
    split = deployment.parallelism
    _check_routed(deployment.model, name)
    if not split.expert:
        raise InputError("says how whole experts load ranks, but each has a slice of all", where=name, hint="give --ep")
    if split.expert_ranks == 1:
        raise InputError("says how ranks are loaded, but there is one", where=name, hint="give --tp or --count too")


def _concentration(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (LEAST <= value <= MOST or value == math.inf):
        what = f"a concentration is a number from {LEAST:g} to {MOST:g}, or inf, not {text!r}"
        raise InputError(what, where="expert_load", hint=HINT)
    return value
