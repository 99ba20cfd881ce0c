"""Module names of checkpoints: which part of the weights they belong to, and which parts a list of them leaves out."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

from servewise.errors import InputError
from servewise.modelspec.fields import Fields
from servewise.modelspec.spec import WeightPart

# Names that the parts' matrices have in checkpoints, to be matched against lists of modules that stay unquantised.
SAMPLE = "7"
NUMBER = re.compile(r"\.(\d{1,6})(?=\.)")
EXCLUSIONS = ("modules_to_not_convert", "ignore", "exclude_modules", "ignored_layers", "llm_int8_skip_modules")
MOST_REPEATS, MOST_EXPRESSIONS = 3, 256
SAMPLES = {
    WeightPart.ATTENTION: ("model.layers.7.self_attn.q_proj", "model.layers.7.self_attn.q_b_proj"),
    WeightPart.FEED_FORWARD: ("model.layers.7.mlp.gate_proj", "model.layers.7.mlp.shared_experts.gate_proj"),
    WeightPart.EXPERTS: ("model.layers.7.mlp.experts.7.gate_proj", "model.layers.7.block_sparse_moe.experts.7.w1"),
    WeightPart.HEAD: ("lm_head",),
}
MIXERS = re.compile(r"attn|attention|mixer\.(in|out|q|k|v|o)_proj")


def part_of(module: str) -> WeightPart:
    """The part that a module belongs to, from its name.

    >>> part_of("model.layers.3.mlp.experts.5.down_proj").value, part_of("backbone.layers.1.mixer.in_proj").value
    ('experts', 'attention')
    """
    if "lm_head" in module:
        return WeightPart.HEAD
    if "experts" in module and "shared_expert" not in module:
        return WeightPart.EXPERTS
    return WeightPart.ATTENTION if MIXERS.search(module) else WeightPart.FEED_FORWARD


def excluded_parts(settings: Fields, layers: int) -> frozenset[WeightPart]:
    """The parts that the config lists as left unquantised, in at least half of the layers."""
    patterns = _patterns(settings, layers)
    return frozenset(
        part
        for part, samples in SAMPLES.items()
        if any(_covers(pattern, sample) for pattern in patterns for sample in samples)
    )


def _patterns(settings: Fields, layers: int) -> list[str]:
    """The listed names with each layer's number replaced by the samples', so that they are few."""
    numbers: dict[str, set[str]] = {}
    for name in EXCLUSIONS:
        for each in settings.listed(name) or ():
            if isinstance(each, str):
                found = NUMBER.search(each)
                generic = NUMBER.sub(f".{SAMPLE}", each.replace("language_model.", ""))
                numbers.setdefault(generic, set()).add(found[1] if found else "")
    if sum(each.startswith("re:") for each in numbers) > MOST_EXPRESSIONS:
        raise InputError(f"lists over {MOST_EXPRESSIONS} regular expressions", where=settings.where)
    return [pattern for pattern, each in numbers.items() if "" in each or 2 * len(each) >= layers]


def _covers(pattern: str, module: str) -> bool:
    if pattern.startswith("re:"):
        return _matches(pattern[3:], module)
    if any(mark in pattern for mark in "*?["):
        return fnmatchcase(module, pattern) or fnmatchcase(module, pattern + ".*")
    return f".{pattern}." in f".{module}."


def _matches(pattern: str, module: str) -> bool:
    """Whether the regular expression matches; one that could take long (nested or many repeats) does not."""
    if len(pattern) > 200 or len(re.findall(r"[*+{]", pattern)) > MOST_REPEATS or re.search(r"\)[*+{]", pattern):
        return False
    try:
        return re.match(pattern, module) is not None
    except (re.error, OverflowError, RecursionError):
        return False
