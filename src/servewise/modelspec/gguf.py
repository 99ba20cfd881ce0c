"""The header of a GGUF file (version 2 or 3): metadata and tensor infos, read without touching the weights.

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. Every length is checked against what the file can
still hold before anything is read, so that a truncated or hostile file costs neither memory nor time.
"""

from __future__ import annotations

import math
import mmap
import struct
from dataclasses import dataclass
from pathlib import Path

from servewise.errors import InputError
from servewise.modelspec.gguf_types import TENSOR_TYPES, TensorType

MAGIC = b"GGUF"
MOST_HEADER_BYTES = 2**26  # a vocabulary of 256,000 tokens with merges takes about 10 MB
MOST_PAIRS, MOST_TENSORS, MOST_ITEMS = 2**16, 2**20, 2**22
MOST_NAME_BYTES = 2**16
KEPT_ITEMS, KEPT_TEXT_BYTES = 2**13, 2**16  # longer arrays and texts (token lists, chat templates) are skipped
MOST_DIMENSIONS = 4
MOST_PARAMETERS = 2**50

STRING, ARRAY = 8, 9
LENGTH = struct.Struct("<Q")
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}

Scalar = int | float | bool | str
Value = Scalar | list[Scalar] | None  # None: skipped


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor: its dimensions (the first is contiguous) and how it is stored."""

    name: str
    dimensions: tuple[int, ...]
    type: TensorType

    @property
    def parameters(self) -> int:
        """Values in it."""
        return math.prod(self.dimensions)

    @property
    def bytes(self) -> int:
        """Bytes of its data."""
        return self.parameters // self.type.block_values * self.type.block_bytes


@dataclass(frozen=True, slots=True)
class Header:
    """What a GGUF file says before its data: ``lengths`` are those of arrays, kept or skipped."""

    version: int
    metadata: dict[str, Value]
    lengths: dict[str, int]
    tensors: tuple[Tensor, ...]
    where: str


def read_header(path: Path) -> Header:
    """The header of the GGUF file at ``path``; raises InputError for anything that is not one."""
    try:
        with path.open("rb") as file:
            if len(file.read(8)) < 8:
                raise InputError("ends within the GGUF header", where=str(path))
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return parse_header(data, str(path))
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read ({error})", where=str(path)) from None


def parse_header(data: bytes | mmap.mmap, where: str) -> Header:
    """The header at the start of ``data``."""
    cursor = Cursor(data, where)
    if cursor.take(4) != MAGIC:
        raise cursor.broken("does not start with GGUF")
    version = cursor.number("I")
    if version not in (2, 3):
        swapped = int.from_bytes(int(version).to_bytes(4, "little"), "big")
        kind = "big-endian" if swapped in (2, 3) else f"of version {version}"
        raise cursor.broken(f"is {kind}; versions 2 and 3, little-endian, are read")
    tensor_count = cursor.bounded("Q", MOST_TENSORS, 24, "tensors")
    pair_count = cursor.bounded("Q", MOST_PAIRS, 13, "metadata entries")
    metadata: dict[str, Value] = {}
    lengths: dict[str, int] = {}
    for _ in range(pair_count):
        _read_pair(cursor, metadata, lengths)
    tensors = tuple(_read_tensor(cursor) for _ in range(tensor_count))
    if len({each.name for each in tensors}) < len(tensors):
        raise cursor.broken("names a tensor twice")
    return Header(version, metadata, lengths, tensors, where)


class Cursor:
    """A position in the header; what would pass its end is an InputError."""

    def __init__(self, data: bytes | mmap.mmap, where: str) -> None:
        self.data, self.where, self.position = data, where, 0
        self.end = min(len(data), MOST_HEADER_BYTES)

    def broken(self, what: str) -> InputError:
        """The error for a file that is not a sound GGUF."""
        return InputError(what, where=self.where, hint="fetch or convert the GGUF file again")

    def skip(self, count: int) -> int:
        """Pass ``count`` bytes; the position before them."""
        start = self.position
        if count > self.end - start:
            cut = self.end == len(self.data)
            raise self.broken("ends within the GGUF header" if cut else f"has a header over {MOST_HEADER_BYTES} bytes")
        self.position = start + count
        return start

    def take(self, count: int) -> bytes:
        """The next ``count`` bytes."""
        start = self.skip(count)
        return self.data[start : self.position]

    def number(self, code: str) -> int:
        """The next whole number, of ``struct``'s little-endian ``code``."""
        start = self.skip(struct.calcsize("<" + code))
        return int(struct.unpack_from("<" + code, self.data, start)[0])

    def bounded(self, code: str, most: int, least_bytes: int, what: str) -> int:
        """The next number as a count of items of at least ``least_bytes``, that the rest of the file can hold."""
        count = self.number(code)
        if count > most or count * least_bytes > self.end - self.position:
            raise self.broken(f"claims {count} {what}, more than the file holds")
        return count

    def skip_texts(self, count: int) -> None:
        """Pass ``count`` strings; a vocabulary has hundreds of thousands, so this loop is a tight one."""
        read, data, position, last = LENGTH.unpack_from, self.data, self.position, self.end - LENGTH.size
        for _ in range(count):
            if position > last:
                position = self.end + 1  # what ``skip`` refuses
                break
            position += LENGTH.size + read(data, position)[0]
        self.skip(position - self.position)

    def text(self, most: int) -> str:
        """The next string, of at most ``most`` bytes."""
        length = self.number("Q")
        if length > most:
            raise self.broken(f"has a name of {length} bytes")
        try:
            return self.take(length).decode("utf-8")
        except UnicodeDecodeError:
            raise self.broken("has a name that is not UTF-8") from None


def _read_pair(cursor: Cursor, metadata: dict[str, Value], lengths: dict[str, int]) -> None:
    key = cursor.text(MOST_NAME_BYTES)
    if key in metadata:
        raise cursor.broken(f"has the entry {key[:60]!r} twice")
    kind = cursor.number("I")
    if kind == ARRAY:
        kind = cursor.number("I")
        lengths[key] = cursor.bounded("Q", MOST_ITEMS, 8 if kind == STRING else 1, f"items in {key[:60]!r}")
        metadata[key] = _read_array(cursor, kind, lengths[key])
    else:
        metadata[key] = _read_string(cursor) if kind == STRING else _read_scalars(cursor, kind, 1)[0]


def _read_string(cursor: Cursor) -> str | None:
    length = cursor.number("Q")
    raw = cursor.skip(length)
    if length > KEPT_TEXT_BYTES:
        return None
    return cursor.data[raw : raw + length].decode("utf-8", errors="replace")


def _read_array(cursor: Cursor, kind: int, count: int) -> list[Scalar] | None:
    if kind != STRING:
        kept = _read_scalars(cursor, kind, count)
        return kept if count <= KEPT_ITEMS else None
    cursor.skip_texts(count)
    return None


def _read_scalars(cursor: Cursor, kind: int, count: int) -> list[Scalar]:
    code = SCALARS.get(kind)
    if code is None:
        raise cursor.broken(f"has a value of type {kind}, which is not known (nested arrays are not read)")
    start = cursor.skip(count * struct.calcsize("<" + code))
    return list(struct.unpack_from(f"<{min(count, KEPT_ITEMS)}{code}", cursor.data, start))


def _read_tensor(cursor: Cursor) -> Tensor:
    name = cursor.text(MOST_NAME_BYTES)
    rank = cursor.bounded("I", MOST_DIMENSIONS, 8, f"dimensions in {name[:60]!r}")
    dimensions = tuple(cursor.number("Q") for _ in range(rank))
    kind, _offset = cursor.number("I"), cursor.number("Q")
    stored = TENSOR_TYPES.get(kind)
    if stored is None:
        raise cursor.broken(f"stores {name[:60]!r} in type {kind}, which is not known")
    tensor = Tensor(name, dimensions, stored)
    if not all(dimensions) or tensor.parameters > MOST_PARAMETERS or (dimensions or (1,))[0] % stored.block_values:
        raise cursor.broken(f"gives {name[:60]!r} the shape {dimensions}, which {stored.name} cannot have")
    return tensor
