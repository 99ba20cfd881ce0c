"""What one of several ranks holds of a model.

Whole KV heads with the query heads that read them, an even part of the MLP's inner width, and of the vocabulary in the
output projection; norms and the embedding table are on every rank (Shoeybi et al. 2019, section 3). Parts need not be
equal: 3 KV heads on 2 ranks are 2 and 1. With more ranks than KV heads a KV head is on several ranks and its query
heads are split.
"""

from __future__ import annotations

from dataclasses import dataclass

from servewise.engine.config import DecoderConfig
from servewise.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """One rank's query heads, KV heads, inner width and vocabulary, each a range of the whole."""

    rank: int
    ranks: int
    heads: range
    kv_heads: range
    inner: range
    vocabulary: range


def share_of(config: DecoderConfig, rank: int, ranks: int) -> Share:
    """The share of ``rank`` among ``ranks``; raises InputError where the heads cannot be dealt out."""
    if not 0 <= rank < ranks:
        raise InputError(f"rank {rank} of {ranks} ranks")
    heads, kv_heads = _heads(config, rank, ranks)
    return Share(
        rank=rank,
        ranks=ranks,
        heads=heads,
        kv_heads=kv_heads,
        inner=part(config.intermediate, rank, ranks),
        vocabulary=part(config.vocabulary, rank, ranks),
    )


def part(size: int, rank: int, ranks: int) -> range:
    """The ``rank``-th of ``ranks`` parts of ``size``, as equal as can be, the larger first.

    >>> [part(5, rank, 3) for rank in range(3)]
    [range(0, 2), range(2, 4), range(4, 5)]
    """
    each, more = divmod(size, ranks)
    start = rank * each + min(rank, more)
    return range(start, start + each + (rank < more))


def _heads(config: DecoderConfig, rank: int, ranks: int) -> tuple[range, range]:
    group = config.heads // config.kv_heads
    if ranks <= config.kv_heads:
        kv = part(config.kv_heads, rank, ranks)
        return range(kv.start * group, kv.stop * group), kv
    copies = ranks // config.kv_heads
    if ranks % config.kv_heads or group % copies:
        raise InputError(
            f"{config.heads} heads on {config.kv_heads} KV heads cannot be dealt to {ranks} ranks",
            where=config.name,
            hint=f"use at most {config.kv_heads} ranks, or a multiple of it that divides the heads",
        )
    kv_head, each = rank // copies, group // copies
    return range(rank * each, (rank + 1) * each), range(kv_head, kv_head + 1)
