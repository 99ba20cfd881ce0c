"""Attention of one step, through PyTorch's fused SDPA.

Legend: T new tokens of the step, S sequences of a group, Q new tokens of each, N keys (padded), H heads, K KV heads,
D head size, B blocks of a table.

The sequences are grouped once a step and the groups serve every layer. Sequences with equally many new tokens and
similar contexts (decoding ones, drafts being verified) are one padded product; a long prompt chunk is a group of its
own.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from servewise.engine.cache.paged import PagedCache
from servewise.engine.step import KvCache, StepInput

LEAST_FILL = 0.75  # of a group's longest context; shorter sequences form a group of their own
MOST_PADDED_TOKENS = 2**17  # keys of one group, so that its gathered copy stays small beside the cache
MOST_QUERIES_TOGETHER = 64  # longer chunks fill the cores alone


@dataclass(frozen=True, slots=True)
class Group:
    """Sequences computed together: their rows in T (None: all of T in order), tables, contexts and mask.

    ``mask``, (S, 1, Q, N), is True where a query sees a key; None: it sees all, or with ``causal`` all up to itself.
    """

    rows: Tensor | None
    tables: tuple[tuple[int, ...], ...]
    tables_SB: Tensor
    contexts: tuple[int, ...]
    queries: int
    mask: Tensor | None
    causal: bool


def groups_of(step: StepInput, block_tokens: int, window: int | None) -> list[Group]:
    """The step's sequences in groups."""
    lengths = [end - start for start, end in zip(step.query_starts, step.query_starts[1:], strict=False)]
    order = sorted(
        (s for s, length in enumerate(lengths) if length), key=lambda s: (lengths[s], -step.context_tokens[s])
    )
    members: list[list[int]] = []
    for s in order:
        if members and _fits(members[-1], s, lengths, step.context_tokens):
            members[-1].append(s)
        else:
            members.append([s])
    return [_group(sorted(each), step, lengths[each[0]], block_tokens, window) for each in members]


def _fits(group: list[int], s: int, lengths: list[int], contexts: tuple[int, ...]) -> bool:
    longest = contexts[group[0]]
    return (
        lengths[s] == lengths[group[0]] <= MOST_QUERIES_TOGETHER
        and contexts[s] >= LEAST_FILL * longest - 64
        and (len(group) + 1) * longest <= MOST_PADDED_TOKENS
    )


def _group(members: list[int], step: StepInput, queries: int, block_tokens: int, window: int | None) -> Group:
    device = step.tokens_T.device
    contexts = tuple(step.context_tokens[s] for s in members)
    longest = max(contexts)
    tables = tuple(step.block_tables[s] for s in members)
    blocks = -(-longest // block_tokens)
    # A short table is padded with its own first block: what stands there is masked, and no other sequence's.
    padded = [(*table[:blocks], *(table[:1] * (blocks - len(table)))) for table in tables]
    causal = len(members) == 1 and queries == longest and window is None
    return Group(
        rows=_rows(members, step, queries, device),
        tables=tables,
        tables_SB=torch.tensor(padded, device=device),
        contexts=contexts,
        queries=queries,
        mask=None if causal else _mask(contexts, queries, longest, window, device),
        causal=causal and queries > 1,
    )


def _rows(members: list[int], step: StepInput, queries: int, device: torch.device) -> Tensor | None:
    if queries * len(members) == len(step.tokens_T):
        return None
    starts_S = torch.tensor([step.query_starts[s] for s in members], device=device)
    return (starts_S[:, None] + torch.arange(queries, device=device)).flatten()


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
    if isinstance(cache, PagedCache):
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
