"""A Hugging Face ``config.json`` -> ModelSpec.

Every width is counted as the family's code in transformers allocates it. Where a config is silent, the family's own
default in transformers applies (documented at each reader); a width that has none is refused by name, and so is an
architecture that is not known.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from servewise.errors import InputError, nearest_names
from servewise.modelspec.families.defaults import NESTED_DEFAULTS
from servewise.modelspec.families.network import Network
from servewise.modelspec.families.table import ARCHITECTURES, FAMILIES
from servewise.modelspec.families.towers import tower_parameters
from servewise.modelspec.fields import Fields
from servewise.modelspec.quantization import Storage, read_storage
from servewise.modelspec.spec import Layers, ModelSpec, WeightPart

MOST_VOCABULARY = 2**26
TEXT_PARTS = ("text_config", "llm_config", "language_config")


def parse_config(config: object, *, name: str, source: str = "", where: str = "config.json") -> ModelSpec:
    """The model of a parsed ``config.json``.

    ``name`` is how results call it, ``where`` how errors do. Raises InputError for a config that is not an object,
    lacks fields (all named), has a value out of bounds, or is of an architecture that is not known.
    """
    if not isinstance(config, Mapping):
        raise InputError("must hold one JSON object", where=where, hint="give a Hugging Face config.json")
    outer = Fields(config, where)
    fields, nested = _text_part(outer)
    family = _family(fields, outer)
    fields = fields.over(NESTED_DEFAULTS.get(family, {})) if nested else fields
    network = FAMILIES[family](fields)
    hidden, vocabulary = (
        fields.count("hidden_size", "n_embed", "n_embd"),
        fields.count("vocab_size", most=MOST_VOCABULARY),
    )
    context = fields.count(
        "max_position_embeddings", "n_positions", "model_max_length", "seq_length", default=0, least=0
    )
    fields.check()
    tower = tower_parameters(outer, hidden)
    storage = read_storage(fields, outer)
    tied = outer.flag("tie_word_embeddings", default=network.tied) if nested else network.tied
    table = vocabulary * hidden
    return ModelSpec(
        name=name,
        family=family,
        layers=network.layers,
        hidden_size=hidden,
        vocab_size=vocabulary,
        embedding_parameters=table + network.embedding_extra_parameters + tied * network.head_extra_parameters,
        head_parameters=0 if tied else table + network.head_extra_parameters,
        final_norm_parameters=network.final_norm_parameters,
        max_context_tokens=context or None,
        weights=storage.weights,
        dtype=storage.dtype,
        quantised_parameters=_quantised(network.layers, table, storage, tied),
        quantised_parts=storage.parts if storage.weights != storage.dtype else None,
        part_formats=tuple(storage.formats.items()),
        source=source,
        uncounted=_uncounted(outer, network, tower),
        tower_parameters=tower or 0,
        drafting_parameters=network.drafting_parameters,
    )


def _text_part(outer: Fields) -> tuple[Fields, bool]:
    """The part of a config that describes the language model, and whether it is nested."""
    for name in TEXT_PARTS:
        inner = outer.part(name)
        if inner is not None and inner.values:
            return inner, True
    return outer, False


def _family(fields: Fields, outer: Fields) -> str:
    model_type = fields.text("model_type")
    if model_type in FAMILIES:
        return model_type
    if f"{model_type}_text" in FAMILIES and model_type:
        return f"{model_type}_text"
    architectures = list(fields.listed("architectures") or outer.listed("architectures") or ())
    named = [ARCHITECTURES[each] for each in architectures if isinstance(each, str) and each in ARCHITECTURES]
    if named and not model_type:
        return named[0]
    if not model_type and not architectures:
        raise InputError("missing field model_type", where=fields.where, hint="take the checkpoint's own config.json")
    called = (model_type or str(architectures[0]))[:60]
    near = nearest_names(called, FAMILIES)
    raise InputError(
        f"architecture {called!r} is not known",
        where=fields.where,
        hint=f"known: {', '.join(sorted(FAMILIES))}" + (f"; nearest: {', '.join(near)}" if near else ""),
    )


def _quantised(layers: tuple[Layers, ...], table: int, storage: Storage, tied: bool) -> int | None:
    if storage.weights == storage.dtype:
        return None
    total = 0
    for group in layers:
        part = group.feed_forward
        inside = {
            WeightPart.ATTENTION: group.attention.parameters,
            WeightPart.FEED_FORWARD: part.dense_parameters,
            WeightPart.EXPERTS: part.experts * part.expert_parameters,
        }
        total += group.count * sum(count for name, count in inside.items() if name in storage.parts)
    return total + table * (WeightPart.HEAD in storage.parts and not tied)


def _uncounted(outer: Fields, network: Network, tower: int | None) -> tuple[str, ...]:
    vision = ("vision tower",) if tower is None else ()
    audio = ("audio tower",) if isinstance(outer.get("audio_config"), Mapping) else ()
    return (*vision, *audio, *network.uncounted)


def parse_text(text: str, *, name: str, source: str = "", where: str = "config.json") -> ModelSpec:
    """The model of a ``config.json``'s text; raises InputError where it is not JSON."""
    return parse_config(read_json(text, where), name=name, source=source, where=where)


def read_json(text: str, where: str) -> Any:
    """The text's JSON value; every way in which it can fail is one InputError."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)[:120]
        raise InputError(f"not valid JSON ({reason})", where=where) from None
