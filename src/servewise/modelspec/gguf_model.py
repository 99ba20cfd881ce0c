"""A GGUF header -> ModelSpec: parameters and bytes from the tensors, what a token keeps from the metadata.

Counts and bytes are exact: they are the file's own, whatever types its tensors mix.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from servewise.errors import InputError, nearest_names
from servewise.modelspec.fields import MOST_LAYERS, Fields
from servewise.modelspec.gguf import Header, Tensor, read_header
from servewise.modelspec.gguf_layers import CONSTANTS, KNOWN, Scope, layer_part, parameters_in, read_layers
from servewise.modelspec.spec import ModelSpec, WeightPart
from servewise.precision import FORMATS, Precision

LAYER = re.compile(r"blk\.(\d{1,5})\.(.+)")
SPLIT = re.compile(r"(.*)-\d{5}-of-(\d{5})\.gguf", re.IGNORECASE)


def read_gguf(path: Path) -> ModelSpec:
    """The model that a GGUF file describes; a split one is read from all its parts."""
    header = read_header(path)
    return to_model(_joined(header, path), name=_name(header, path))


def _name(header: Header, path: Path) -> str:
    named = header.metadata.get("general.name")
    return named.strip()[:200] if isinstance(named, str) and named.strip() else path.stem


def _joined(header: Header, path: Path) -> Header:
    fields = Fields(header.metadata, header.where)
    count = fields.count("split.count", default=1, least=0, most=99_999)
    if count <= 1:
        return header
    match = SPLIT.fullmatch(path.name)
    if match is None or int(match[2]) != count:
        raise InputError(
            f"is one of {count} parts", where=str(path), hint=f"keep the name ...-00001-of-{count:05d}.gguf"
        )
    parts = [path.with_name(f"{match[1]}-{number + 1:05d}-of-{count:05d}.gguf") for number in range(count)]
    missing = [part.name for part in parts if not part.is_file()]
    if missing:
        raise InputError(
            f"part {missing[0]} of {count} is missing", where=str(path), hint="put all parts in one folder"
        )
    headers = [read_header(part) for part in parts]
    return replace(headers[0], tensors=tuple(tensor for each in headers for tensor in each.tensors))


def to_model(header: Header, name: str) -> ModelSpec:
    """The model of a header.

    Raises InputError for an architecture that is not known, and for missing metadata or tensors, by name.
    """
    fields = Fields(header.metadata, header.where)
    architecture = fields.text("general.architecture")
    if architecture not in KNOWN:
        near = nearest_names(architecture, KNOWN)
        offer = f"; nearest: {', '.join(near)}" if near else ""
        raise InputError(
            f"GGUF architecture {architecture[:60]!r} is not known" if architecture else "missing general.architecture",
            where=header.where,
            hint=f"known: {', '.join(sorted(KNOWN))}{offer}",
        )
    scoped = Scope(fields, architecture)
    hidden, blocks = scoped.count("embedding_length"), scoped.count("block_count", most=MOST_LAYERS)
    drafting = scoped.count("nextn_predict_layers", default=0, least=0)
    used = max(blocks - drafting, 1)
    tensors = _by_place(header.tensors)
    table = next((each for each in header.tensors if each.name == "token_embd.weight"), None)
    if table is None or len(table.dimensions) != 2 or table.dimensions[0] != hidden:
        fields.missing("token_embd.weight (embedding_length x vocabulary)")
    layers = read_layers(scoped, [tensors.layers.get(index, []) for index in range(used)])
    fields.check()
    assert table is not None
    outside = _bytes_by_part(tensors, used)
    return ModelSpec(
        name=name,
        family=architecture,
        layers=layers,
        hidden_size=hidden,
        vocab_size=table.dimensions[1],
        embedding_parameters=parameters_in(tensors.outer[WeightPart.EMBEDDING]),
        head_parameters=parameters_in(tensors.outer[WeightPart.HEAD]),
        final_norm_parameters=parameters_in(tensors.outer[WeightPart.NORMS]),
        max_context_tokens=scoped.count("context_length", default=0, least=0) or None,
        weights=_format(each for index in range(used) for each in tensors.layers.get(index, []) if _is_matrix(each)),
        dtype=FORMATS["fp16"],
        source=header.where,
        quantised_parts=frozenset(part for part, _ in outside),
        checkpoint_bytes=sum(size for _, size in outside),
        stored_bytes=outside,
        uncounted=(f"{drafting} multi-token prediction layers",) if drafting else (),
    )


@dataclass(frozen=True, slots=True)
class Places:
    """The tensors of each layer, and those outside of them by part."""

    layers: Mapping[int, list[Tensor]]
    outer: Mapping[WeightPart, list[Tensor]]


def _by_place(tensors: Iterable[Tensor]) -> Places:
    layers: dict[int, list[Tensor]] = defaultdict(list)
    outer: dict[WeightPart, list[Tensor]] = defaultdict(list)
    for tensor in tensors:
        match = LAYER.match(tensor.name)
        if match:
            layers[int(match[1])].append(tensor)
        else:
            outer[_outer_part(tensor.name)].append(tensor)
    return Places(layers, outer)


def _outer_part(name: str) -> WeightPart:
    if name.startswith(("output_norm", *CONSTANTS)):
        return WeightPart.NORMS
    return WeightPart.HEAD if name.startswith("output") else WeightPart.EMBEDDING


def _is_matrix(tensor: Tensor) -> bool:
    return len(tensor.dimensions) > 1


def _bytes_by_part(places: Places, used: int) -> tuple[tuple[WeightPart, int], ...]:
    sizes = dict.fromkeys(WeightPart, 0)
    for part, tensors in places.outer.items():
        sizes[part] += sum(each.bytes for each in tensors)
    for index in range(used):
        for tensor in places.layers.get(index, []):
            sizes[layer_part(tensor.name)] += tensor.bytes
    return tuple(sizes.items())


def _format(tensors: Iterable[Tensor]) -> Precision:
    """The effective format of the layers' matrices: named after the type with most bytes, with the bits in fact."""
    sizes: dict[str, int] = defaultdict(int)
    values = 0
    for tensor in tensors:
        sizes[tensor.type.format] += tensor.bytes
        values += tensor.parameters
    if not values:
        return FORMATS["fp16"]
    known = FORMATS[max(sizes, key=lambda name: sizes[name])]
    compute = known.compute if known.bits >= 16 or known.compute == "fp4" else "bf16"
    return Precision(known.name, 8 * sum(sizes.values()) / values, compute)
