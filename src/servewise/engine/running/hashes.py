"""Chained hashes of a sequence's blocks: equal hash, equal prefix up to and with that block."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from hashlib import blake2b


def block_hashes(tokens: Sequence[int], block_tokens: int, salt: bytes = b"") -> tuple[int, ...]:
    """A 64-bit hash for each full block of ``block_tokens`` tokens, over its tokens and the hash of the block before.

    As vLLM chains them (its design page "Automatic Prefix Caching": hash of parent, tokens and extra keys), with
    BLAKE2b, so that they are equal in every process. ``salt`` (up to 16 bytes) keeps tenants apart: other salt, other
    hashes. Two different prefixes have one hash with probability 2**-64.
    """
    found: list[int] = []
    for start in range(0, len(tokens) - block_tokens + 1, block_tokens):
        found.append(next_hash(found, tokens[start : start + block_tokens], salt))
    return tuple(found)


def next_hash(before: Sequence[int], block: Sequence[int], salt: bytes = b"") -> int:
    """The hash of the tokens of ``block``, which follows the blocks whose hashes are ``before``."""
    parent = before[-1].to_bytes(8, "little") if before else b""
    data = array("q", block).tobytes()
    return int.from_bytes(blake2b(parent + data, digest_size=8, salt=salt).digest(), "little")
