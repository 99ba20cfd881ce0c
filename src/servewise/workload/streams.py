"""Random streams: one seed, one independent stream per purpose."""

from __future__ import annotations

import zlib

import numpy as np

from servewise.errors import InputError


def stream(seed: int, purpose: str, *members: int) -> np.random.Generator:
    """The generator of ``purpose`` under ``seed``: equal pairs give equal streams, others independent ones.

    ``members`` (whole numbers from 0) name one of many streams of a purpose, e.g. the text of one request.

    Raises InputError for a seed that is negative or not whole.

    >>> stream(1, "arrivals").random() == stream(1, "arrivals").random() != stream(1, "prompts").random()
    True
    """
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**64:
        raise InputError(f"a seed must be a whole number from 0 to 2^64 - 1, not {seed!r}")
    entropy = np.random.SeedSequence((seed, zlib.crc32(purpose.encode())), spawn_key=members)
    return np.random.Generator(np.random.PCG64(entropy))
