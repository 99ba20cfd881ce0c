"""Chained block hashes."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from hashlib import blake2b

from hypothesis import given
from hypothesis import strategies as st

from servewise.engine.running.hashes import block_hashes


def test_only_full_blocks_have_a_hash() -> None:
    """11 tokens in blocks of 4: two hashes."""
    assert len(block_hashes(range(11), 4)) == 2
    assert block_hashes(range(3), 4) == ()


def test_by_hand() -> None:
    """BLAKE2b with 8 bytes over the parent's hash and the tokens as 64-bit little-endian numbers."""
    first = blake2b(b"".join(token.to_bytes(8, "little") for token in (1, 2)), digest_size=8).digest()
    second = blake2b(first + b"".join(token.to_bytes(8, "little") for token in (3, 4)), digest_size=8).digest()

    assert block_hashes([1, 2, 3, 4], 2) == (int.from_bytes(first, "little"), int.from_bytes(second, "little"))


@given(st.lists(st.integers(0, 3), max_size=20), st.lists(st.integers(0, 3), max_size=20), st.integers(1, 4))
def test_equal_hashes_mean_equal_prefixes(one: list[int], other: list[int], size: int) -> None:
    """The hashes of two prompts agree exactly as far as their blocks do from the start."""
    pairs = zip(block_hashes(one, size), block_hashes(other, size), strict=False)
    for block, (left, right) in enumerate(pairs):
        assert (left == right) == (one[: (block + 1) * size] == other[: (block + 1) * size])


def test_salt_keeps_tenants_apart() -> None:
    """Other salt, other hashes."""
    assert block_hashes([1, 2], 2, b"a") != block_hashes([1, 2], 2, b"b") != block_hashes([1, 2], 2)
