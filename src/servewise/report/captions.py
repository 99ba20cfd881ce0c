"""Conditions and caveats in words: what stands before and after every figure."""

from __future__ import annotations

from collections.abc import Sequence

from servewise.caveats import Caveat
from servewise.conditions import Conditions
from servewise.report.reading import clean

_LONGEST_NAME = 40
_ABSENT = ("none", "n/a", "-", "")
_WORDS = {
    "model": "Model",
    "hardware": "Hardware",
    "parallelism": "Parallelism",
    "experts": "Expert load",
    "precision": "Precision",
    "engine": "Engine",
    "estimator": "Step times",
    "policy": "Policy",
    "workload": "Workload",
    "load": "Load",
    "lengths": "Lengths",
    "seeds": "Seeds",
    "version": "Servewise",
}


def caption(conditions: Conditions) -> str:
    """The conditions in one line, for under a figure and over a table."""
    parts = [
        _known(str(conditions)),
        conditions.workload,
        _labelled("step times", conditions.estimator),
        _labelled("expert load", conditions.experts),
        _seeds(conditions),
    ]
    return clean("; ".join(part for part in parts if part))


def differing(conditions: Conditions, besides: Conditions) -> str:
    """Those of the conditions in which they are not ``besides``; nothing where all are the same."""
    known = dict(condition_pairs(besides))
    return "; ".join(f"{name}: {value}" for name, value in condition_pairs(conditions) if known.get(name) != value)


def condition_pairs(conditions: Conditions) -> list[tuple[str, str]]:
    """Name and value of each condition that applies."""
    values = {name: getattr(conditions, name) for name in _WORDS}
    values["seeds"] = seed_list(conditions.seeds) if conditions.seeds else None
    return [(_WORDS[name], clean(value)) for name, value in values.items() if value not in (None, *_ABSENT)]


def caveat_lines(caveats: Sequence[Caveat]) -> list[tuple[str, str]]:
    """What is doubtful, and its cure; caveats of one kind with one cure stand together.

    What several runs or policies have in common is said once, with their names: ``static, dynamic: unstable ...``.
    """
    kinds: dict[tuple[str, str], dict[str, list[str]]] = {}
    for caveat in caveats:
        name, said = _whose(caveat.message)
        kinds.setdefault((caveat.code, caveat.cure), {}).setdefault(said, []).append(name)
    return [
        (" ".join(sentence(_together(names, said)) for said, names in found.items()), sentence(cure))
        for (_, cure), found in kinds.items()
    ]


def _whose(message: str) -> tuple[str, str]:
    """Whose caveat it is, and what it says: ``A: p95 grows`` is A's."""
    name, colon, said = message.partition(": ")
    return (name, said) if colon and len(name) <= _LONGEST_NAME else ("", message)


def _together(names: Sequence[str], said: str) -> str:
    named = ", ".join(dict.fromkeys(name for name in names if name))
    return f"{named}: {said}" if named else said


def seed_list(seeds: Sequence[int]) -> str:
    """Seeds in short: ``0 to 9`` for a run of them.

    >>> seed_list((0, 1, 2)), seed_list((7,)), seed_list((1, 5))
    ('0 to 2', '7', '1, 5')
    """
    if len(seeds) > 2 and list(seeds) == list(range(seeds[0], seeds[0] + len(seeds))):
        return f"{seeds[0]} to {seeds[-1]}"
    return ", ".join(str(seed) for seed in seeds)


def _seeds(conditions: Conditions) -> str:
    return f"seeds {seed_list(conditions.seeds)}" if conditions.seeds else ""


def _labelled(label: str, value: str | None) -> str:
    return f"{label}: {value}" if value else ""


def _known(line: str) -> str:
    """The line without the parts that do not apply ("none"), nor a part said twice."""
    parts = [part.removesuffix(" on none") for part in line.split(", ") if part not in _ABSENT]
    return ", ".join(part for place, part in enumerate(parts) if not place or part != parts[place - 1])


def sentence(found: str) -> str:
    """``found`` with a capital and a full stop."""
    words = clean(found).strip().replace("<=", "≤")
    first = words.split(" ", 1)[0].rstrip(":,")
    words = words[:1].upper() + words[1:] if first.isalpha() and first.islower() else words
    return words if not words or words.endswith((".", "!", "?", ":")) else words + "."
