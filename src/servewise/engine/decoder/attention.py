"""Attention of one step, through PyTorch's fused SDPA.

Legend: T new tokens of the step, S sequences of a group, Q new tokens of each, N keys (padded), H heads, K KV heads,
D head size, B blocks of a table.

The sequences are grouped once a step and the groups serve every layer. Sequences with equally many new tokens and
contexts of one capacity (decoding ones, drafts being verified) are one padded product; a long prompt chunk is a group
of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from servewise.engine.cache.paged import PagedCache
from servewise.engine.cache.view import Placement, capacity, padded
from servewise.engine.step import KvCache, StepInput

MOST_GATHERED_TOKENS = 2**17  # keys of one gathered group, so that the copy stays small beside the cache
MOST_QUERIES_TOGETHER = 64  # longer chunks fill the cores alone


@dataclass(frozen=True, slots=True)
class Group:
    """Sequences computed together: their rows in T (None: all of T in order), tables, contexts and mask.

    ``mask``, (S, 1, Q, N), is True where a query sees a key; None: it sees all, or with ``causal`` all up to itself.
    ``placed``: the cache has dense copies of them.
    """

    rows: Tensor | None
    tables: tuple[tuple[int, ...], ...]
    tables_SB: Tensor | None
    contexts: tuple[int, ...]
    queries: int
    mask: Tensor | None
    causal: bool
    placed: Placement | None


def groups_of(step: StepInput, cache: KvCache, window: int | None) -> list[Group]:
    """The step's sequences in groups."""
    lengths = [end - start for start, end in zip(step.query_starts, step.query_starts[1:], strict=False)]
    members: dict[tuple[int, int], list[int]] = {}
    for s, (queries, context) in enumerate(zip(lengths, step.context_tokens, strict=True)):
        if queries:
            like = capacity(context) if queries <= MOST_QUERIES_TOGETHER else -1 - s
            members.setdefault((queries, like), []).append(s)
    placed = _placements(members, step, lengths, cache)
    groups = []
    for (queries, size), group in members.items():
        place = placed.get(size) if queries == 1 else None
        parts = [[group[i] for i in place.order]] if place is not None else _parts(group, size)
        groups += [_group(part, step, queries, cache.block_tokens, window, place) for part in parts]
    return groups


def _placements(
    members: dict[tuple[int, int], list[int]], step: StepInput, lengths: list[int], cache: KvCache
) -> dict[int, Placement | None]:
    """Where each capacity's decoding sequences have dense copies."""
    if not isinstance(cache, PagedCache):
        return {}
    size = cache.block_tokens
    written: set[int] = set()
    for length, end, table in zip(lengths, step.context_tokens, step.block_tables, strict=True):
        written.update(table[(end - length) // size : -(-end // size)])
    decoding = {like: group for (queries, like), group in members.items() if queries == 1}
    asked = [([step.block_tables[s] for s in g], [step.context_tokens[s] for s in g]) for g in decoding.values()]
    return dict(zip(decoding, cache.place(asked, written), strict=True))


def _parts(group: list[int], size: int) -> list[list[int]]:
    most = max(1, MOST_GATHERED_TOKENS // size) if size > 0 else 1
    return [group[i : i + most] for i in range(0, len(group), most)]


def _group(
    members: list[int], step: StepInput, queries: int, block_tokens: int, window: int | None, placed: Placement | None
) -> Group:
    device = step.tokens_T.device
    contexts = tuple(step.context_tokens[s] for s in members)
    longest = max(contexts)
    tables = tuple(step.block_tables[s] for s in members)
    blocks = -(-longest // block_tokens)
    causal = len(members) == 1 and queries == longest and window is None
    return Group(
        rows=_rows(members, step, queries, device),
        tables=tables,
        tables_SB=None if placed is not None else torch.tensor([padded(t, blocks) for t in tables], device=device),
        contexts=contexts,
        queries=queries,
        mask=None if causal else _mask(contexts, queries, longest, window, device),
        causal=causal and queries > 1,
        placed=placed,
    )


def _rows(members: list[int], step: StepInput, queries: int, device: torch.device) -> Tensor | None:
    starts = [step.query_starts[s] for s in members]
    if starts == list(range(0, len(step.tokens_T), queries)):
        return None
    return (torch.tensor(starts, device=device)[:, None] + torch.arange(queries, device=device)).flatten()


def _mask(
    contexts: tuple[int, ...], queries: int, longest: int, window: int | None, device: torch.device
) -> Tensor | None:
    if queries == 1 and min(contexts) == longest and (window is None or longest <= window):
        return None
    ends_S = torch.tensor(contexts, device=device) - queries + 1
    seen_SQ1 = (ends_S[:, None] + torch.arange(queries, device=device))[:, :, None]
    keys_N = torch.arange(longest, device=device)
    mask_SQN = keys_N < seen_SQ1
    if window is not None:
        mask_SQN &= keys_N >= seen_SQ1 - window
    return mask_SQN[:, None]


def attend(q_THD: Tensor, groups: list[Group], cache: KvCache, layer: int) -> Tensor:
    """Attention's output, (T, H, D): each new token over its sequence's keys up to itself (in the window)."""
    if len(groups) == 1 and groups[0].rows is None:
        return _attend_group(q_THD, groups[0], cache, layer)
    out_THD = torch.empty_like(q_THD)
    for group in groups:
        assert group.rows is not None
        out_THD[group.rows] = _attend_group(q_THD[group.rows], group, cache, layer)
    return out_THD


def _attend_group(q: Tensor, group: Group, cache: KvCache, layer: int) -> Tensor:
    sequences = len(group.contexts)
    keys_SNKD, values_SNKD = _gather(group, cache, layer)
    q_SHQD = q.view(sequences, group.queries, *q.shape[1:]).transpose(1, 2)
    out_SHQD = functional.scaled_dot_product_attention(
        q_SHQD,
        keys_SNKD.transpose(1, 2),
        values_SNKD.transpose(1, 2),
        attn_mask=group.mask,
        is_causal=group.causal,
        enable_gqa=True,
    )
    return out_SHQD.transpose(1, 2).reshape(q.shape)


def _gather(group: Group, cache: KvCache, layer: int) -> tuple[Tensor, Tensor]:
    longest = max(group.contexts)
    if group.placed is not None and isinstance(cache, PagedCache):
        return cache.read_placed(layer, group.placed)
    if group.tables_SB is not None and isinstance(cache, PagedCache):
        keys, values = cache.read_padded(layer, group.tables_SB)
        return keys[:, :longest], values[:, :longest]
    parts = [cache.read(layer, *each) for each in zip(group.tables, group.contexts, strict=True)]
    return _stacked([keys for keys, _ in parts], longest), _stacked([values for _, values in parts], longest)


def _stacked(parts: list[Tensor], longest: int) -> Tensor:
    if len(parts) == 1:
        return parts[0].unsqueeze(0)
    stacked_SNKD = parts[0].new_zeros(len(parts), longest, *parts[0].shape[1:])
    for s, part in enumerate(parts):
        stacked_SNKD[s, : len(part)] = part
    return stacked_SNKD
