"""A GGUF file's header in full: metadata with the token lists, and where each tensor's data lies.

The parser is modelspec's, which checks every length against what the file can still hold; here the long lists are
kept too, and every tensor's extent is held against the file's length. (The gguf package's own reader takes seconds
for a vocabulary's 100,000 strings, and a damaged file ends it in whatever NumPy raises.)
"""

from __future__ import annotations

import math
import mmap
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from servewise.errors import InputError
from servewise.modelspec.gguf import (
    ARRAY,
    MAGIC,
    MOST_DIMENSIONS,
    MOST_ITEMS,
    MOST_NAME_BYTES,
    MOST_PAIRS,
    MOST_PARAMETERS,
    MOST_TENSORS,
    SCALARS,
    STRING,
    Cursor,
)
from servewise.modelspec.gguf_types import TENSOR_TYPES, TensorType

ALIGNMENT = 32
FETCH = "fetch or convert the GGUF file again"


@dataclass(frozen=True, slots=True)
class GgufTensor:
    """A tensor: rows first (``shape`` as PyTorch has it), how it is stored, and its extent in the file [bytes]."""

    name: str
    shape: tuple[int, ...]
    type: TensorType
    start: int

    @property
    def bytes(self) -> int:
        """Bytes of its data."""
        return math.prod(self.shape) // self.type.block_values * self.type.block_bytes


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """Metadata by key (numbers as Python's, arrays as lists), tensors by name."""

    metadata: dict[str, Any]
    tensors: dict[str, GgufTensor]
    where: str


def read_gguf_header(path: Path) -> GgufHeader:
    """The header of the file at ``path``; raises InputError for one that is damaged, truncated or no GGUF."""
    try:
        with path.open("rb") as file:
            if len(file.read(8)) < 8:
                raise InputError("ends within the GGUF header", where=str(path), hint=FETCH)
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return _parse(data, str(path))
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror or error})", where=str(path)) from None


def _parse(data: mmap.mmap, where: str) -> GgufHeader:
    cursor = Cursor(data, where)
    if cursor.take(4) != MAGIC:
        raise cursor.broken("does not start with GGUF")
    version = cursor.number("I")
    if version not in (2, 3):
        raise cursor.broken(f"is of GGUF version {version}; versions 2 and 3, little-endian, are read")
    tensors = cursor.bounded("Q", MOST_TENSORS, 24, "tensors")
    metadata: dict[str, Any] = {}
    for _ in range(cursor.bounded("Q", MOST_PAIRS, 13, "metadata entries")):
        key = cursor.text(MOST_NAME_BYTES)
        if key in metadata:
            raise cursor.broken(f"has the entry {key[:60]!r} twice")
        metadata[key] = _value(cursor, key)
    listed = [_tensor(cursor) for _ in range(tensors)]
    alignment = metadata.get("general.alignment", ALIGNMENT)
    if not isinstance(alignment, int) or not 1 <= alignment <= 2**20:
        raise cursor.broken(f"has the alignment {alignment!r:.40}")
    base = -(-cursor.position // alignment) * alignment
    return GgufHeader(metadata, _placed(listed, base, len(data), cursor), where)


def _value(cursor: Cursor, key: str) -> Any:
    kind = cursor.number("I")
    if kind == STRING:
        return _text(cursor)
    if kind != ARRAY:
        return _scalars(cursor, kind, 1)[0]
    kind = cursor.number("I")
    count = cursor.bounded("Q", MOST_ITEMS, 8 if kind == STRING else 1, f"items in {key[:60]!r}")
    return [_text(cursor) for _ in range(count)] if kind == STRING else _scalars(cursor, kind, count)


def _text(cursor: Cursor) -> str:
    length = cursor.number("Q")
    return cursor.take(length).decode("utf-8", errors="replace")


def _scalars(cursor: Cursor, kind: int, count: int) -> list[Any]:
    code = SCALARS.get(kind)
    if code is None:
        raise cursor.broken(f"has a value of type {kind}, which is not known (nested arrays are not read)")
    start = cursor.skip(count * struct.calcsize("<" + code))
    return list(struct.unpack_from(f"<{count}{code}", cursor.data, start))


def _tensor(cursor: Cursor) -> GgufTensor:
    name = cursor.text(MOST_NAME_BYTES)
    rank = cursor.bounded("I", MOST_DIMENSIONS, 8, f"dimensions in {name[:60]!r}")
    shape = tuple(reversed([cursor.number("Q") for _ in range(rank)]))
    kind, offset = cursor.number("I"), cursor.number("Q")
    stored = TENSOR_TYPES.get(kind)
    if stored is None:
        raise cursor.broken(f"stores {name[:60]!r} in type {kind}, which is not known")
    if not all(shape) or math.prod(shape) > MOST_PARAMETERS or (shape or (1,))[-1] % stored.block_values:
        raise cursor.broken(f"gives {name[:60]!r} the shape {list(shape)}, which {stored.name} cannot have")
    return GgufTensor(name, shape, stored, offset)


def _placed(listed: list[GgufTensor], base: int, length: int, cursor: Cursor) -> dict[str, GgufTensor]:
    """The tensors with their place in the file; refused where one is named twice or lies beyond the file's end."""
    placed: dict[str, GgufTensor] = {}
    for each in listed:
        if each.name in placed:
            raise cursor.broken(f"names the tensor {each.name[:60]!r} twice")
        if base + each.start + each.bytes > length:
            end = base + each.start + each.bytes
            raise cursor.broken(f"ends at byte {length}, before {each.name[:60]!r} does at {end}: it is truncated")
        placed[each.name] = GgufTensor(each.name, each.shape, each.type, base + each.start)
    return placed


def read_blocks(path: Path, tensor: GgufTensor) -> np.ndarray:
    """The bytes of one tensor, uint8; raises InputError where the file has shrunk since it was opened."""
    try:
        data = np.fromfile(path, dtype=np.uint8, count=tensor.bytes, offset=tensor.start)
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror or error})", where=str(path)) from None
    if data.size < tensor.bytes:
        raise InputError(f"ends within {tensor.name}: it is truncated", where=str(path), hint=FETCH)
    return data
