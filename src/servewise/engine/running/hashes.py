"""Chained hashes of a prompt's blocks: equal hash, equal prefix up to and with that block."""

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
    data = array("q", tokens).tobytes()
    size = 8 * block_tokens
    parent = b""
    found = []
    for start in range(0, len(data) - size + 1, size):
        parent = blake2b(parent + data[start : start + size], digest_size=8, salt=salt).digest()
        found.append(int.from_bytes(parent, "little"))
    return tuple(found)
