"""A batch laid out for the model: each sequence's new tokens, positions and cache slots, back to back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import torch

from servewise.batching.batch import Batch
from servewise.engine.running.addresses import AddressedPool
from servewise.engine.running.generation import Generation
from servewise.engine.step import StepInput


class Span(NamedTuple):
    """``new_tokens`` tokens of a generation from ``start`` on. ``wanted``: the last one's logits are computed.

    ``samples``: a token is chosen from them. The row of an ended member of a static batch is wanted and not sampled:
    it is computed on, as a padded batch is.
    """

    generation: Generation
    start: int
    new_tokens: int
    wanted: bool
    samples: bool


def spans_of(batch: Batch, running: Iterable[Generation]) -> list[Span]:
    """The spans of ``batch``: decoding sequences in order of admission, ended rows, prompt chunks."""
    spans: list[Span] = []
    if batch.decodes:
        members = list(running)
        decoding = [each for each in members if each.join]
        spans += [Span(each, len(each.tokens) - 1, 1, True, True) for each in decoding]
        if len(decoding) < batch.decodes:
            ended = [each for each in members if not each.join]
            spans += [Span(each, each.computed_tokens - 1, 1, True, False) for each in ended]
        assert len(spans) == batch.decodes, f"{batch.decodes} rows were planned where {len(spans)} sequences decode"
    for sequence, computed_tokens, new_tokens, ends_prompt in batch.chunks:
        assert isinstance(sequence, Generation), "the engine adds only generations"
        spans.append(Span(sequence, computed_tokens, new_tokens, ends_prompt, ends_prompt))
    return spans


def step_input(spans: Sequence[Span], pool: AddressedPool, device: torch.device) -> StepInput:
    """The tensors, on ``device``, of one step over ``spans``, whose tables are long enough."""
    size = pool.block_tokens
    tokens: list[int] = []
    positions: list[int] = []
    slots: list[int] = []
    starts, rows = [0], []
    tables = tuple(pool.table(span.generation) for span in spans)
    for span, table in zip(spans, tables, strict=True):
        where = range(span.start, span.start + span.new_tokens)
        tokens += span.generation.tokens[where.start : where.stop]
        positions += where
        slots += [table[at // size] * size + at % size for at in where]
        starts.append(len(tokens))
        if span.wanted:
            rows.append(len(tokens) - 1)
    return StepInput(
        torch.tensor(tokens, device=device),
        torch.tensor(positions, device=device),
        torch.tensor(slots, device=device),
        tuple(starts),
        tuple(span.start + span.new_tokens for span in spans),
        tables,
        torch.tensor(rows, dtype=torch.int64, device=device),
    )
