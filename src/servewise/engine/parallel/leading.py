"""Ranks that follow: the first rank decides and announces each step, the others compute their shares of it.

An announcement is one row of whole numbers: what to do, then the step's parts, each with its length before it.
"""

from __future__ import annotations

from itertools import chain

import torch
import torch.distributed as dist
from torch import Tensor

from servewise.engine.cache.paged import PagedCache
from servewise.engine.config import DecoderConfig
from servewise.engine.decoder.decoder import Decoder
from servewise.engine.parallel.linears import Group
from servewise.engine.step import KvCache, StepInput

STOP, NEW_CACHE, STEP, CLEAR = range(4)


def encoded(step: StepInput) -> Tensor:
    """The step as one row of whole numbers."""
    parts = [
        step.tokens_T,
        step.positions_T,
        step.slots_T,
        step.rows_R,
        torch.tensor(step.query_starts),
        torch.tensor(step.context_tokens, dtype=torch.long),
        torch.tensor([len(table) for table in step.block_tables], dtype=torch.long),
        torch.tensor(list(chain.from_iterable(step.block_tables)), dtype=torch.long),
    ]
    return torch.cat([piece for part in parts for piece in (torch.tensor([len(part)]), part.cpu())])


def decoded(row: Tensor, device: torch.device) -> StepInput:
    """The step that ``encoded`` made the row of."""
    parts, start = [], 0
    while start < len(row):
        end = start + 1 + int(row[start])
        parts.append(row[start + 1 : end])
        start = end
    tokens, positions, slots, rows = (part.to(device) for part in parts[:4])
    starts, contexts, lengths = (tuple(part.tolist()) for part in parts[4:7])
    blocks = iter(parts[7].tolist())
    return StepInput(
        tokens_T=tokens,
        positions_T=positions,
        slots_T=slots,
        query_starts=starts,
        context_tokens=contexts,
        block_tables=tuple(tuple(next(blocks) for _ in range(length)) for length in lengths),
        rows_R=rows,
    )


class LeadingCache(PagedCache):
    """The first rank's cache; what is done to it is done on the other ranks too."""

    number = 0
    group: Group = None

    def clear(self, blocks: tuple[int, ...]) -> None:
        """Zero these blocks on every rank."""
        _announce(CLEAR, torch.tensor([self.number, *blocks]), self.group)
        super().clear(blocks)


class Leader:
    """The first rank's face of a parallel decoder: a ``Model`` like any other. ``stop`` lets the others return."""

    def __init__(self, decoder: Decoder, group: Group = None) -> None:
        self._decoder, self._group, self._caches = decoder, group, 0

    @property
    def config(self) -> DecoderConfig:
        """Sizes and switches."""
        return self._decoder.config

    def new_cache(self, blocks: int, block_tokens: int = 16) -> PagedCache:
        """An empty cache: this rank's share of the heads here, the others' there."""
        _announce(NEW_CACHE, torch.tensor([blocks, block_tokens]), self._group)
        decoder = self._decoder
        cache = LeadingCache(
            decoder.config,
            blocks,
            block_tokens,
            dtype=decoder.dtype,
            device=decoder.device,
            kv_heads=decoder.kv_heads,
        )
        cache.number, cache.group = self._caches, self._group
        self._caches += 1
        return cache

    def step(self, step: StepInput, cache: KvCache) -> Tensor:
        """Logits, (R, V), computed by all ranks together."""
        assert isinstance(cache, LeadingCache), "a parallel model needs a cache of its own making"
        self._decoder.check(step)
        _announce(STEP, torch.cat((torch.tensor([cache.number]), encoded(step))), self._group)
        return self._decoder.step(step, cache)

    def stop(self) -> None:
        """Let the other ranks' ``follow`` return."""
        _announce(STOP, torch.empty(0, dtype=torch.long), self._group)


def follow(decoder: Decoder, group: Group = None) -> int:
    """Compute this rank's share of whatever the first rank announces, until it stops; returns the steps computed."""
    caches: list[PagedCache] = []
    steps = 0
    while True:
        what, row = _heard(group)
        if what == STOP:
            return steps
        if what == NEW_CACHE:
            caches.append(decoder.new_cache(*row.tolist()))
        elif what == CLEAR:
            caches[int(row[0])].clear(tuple(row[1:].tolist()))
        else:
            decoder.step(decoded(row[1:], decoder.device), caches[int(row[0])])
            steps += 1


def _announce(what: int, row: Tensor, group: Group) -> None:
    device = _wire(group)
    dist.broadcast(torch.tensor([what, len(row)], device=device), group_src=0, group=group)
    if len(row):
        dist.broadcast(row.to(device), group_src=0, group=group)


def _heard(group: Group) -> tuple[int, Tensor]:
    head = torch.empty(2, dtype=torch.long, device=_wire(group))
    dist.broadcast(head, group_src=0, group=group)
    what, length = head.tolist()
    row = torch.empty(length, dtype=torch.long, device=head.device)
    if length:
        dist.broadcast(row, group_src=0, group=group)
    return what, row.cpu()


def _wire(group: Group) -> torch.device:
    """Where the group's backend wants its tensors."""
    return torch.device("cuda" if dist.get_backend(group) == "nccl" else "cpu")
