"""A batch as the estimator sees it."""

from __future__ import annotations

from servewise.batching.batch import Batch
from servewise.modelspec.flops import pairs, windowed_pairs
from servewise.steptime.shape import StepShape, add_verification


def shape_of(batch: Batch, window_tokens: int | None) -> StepShape:
    """The shape of the step that ``batch`` describes."""
    tokens = context = pair_count = ends = 0
    for chunk in batch.chunks:
        start, new = chunk.computed_tokens, chunk.new_tokens
        end = start + new
        tokens += new
        context += end
        pair_count += pairs(start, end)
        ends += chunk.ends_prompt
    windowed, windowed_pair_count = context, pair_count
    if window_tokens is not None:
        windowed, windowed_pair_count = _windowed(batch, window_tokens)
    chunks = (len(batch.chunks), tokens, context, windowed, pair_count, windowed_pair_count)
    if batch.drafted:
        return _verified(batch, StepShape(0, 0, 0, *chunks, ends), window_tokens is not None)
    return StepShape(batch.decodes, batch.context_tokens, batch.windowed_tokens, *chunks, batch.decodes + ends)


def _verified(batch: Batch, beside: StepShape, windowed: bool) -> StepShape:
    """``beside`` with the rows that verify drafts, and with those that have none: all as long as their mean."""
    new, rows = 1 + batch.drafted, batch.drafting or batch.decodes
    plain = batch.decodes - rows
    context, read = batch.context_tokens, batch.windowed_tokens
    if plain:
        own = (context - plain - rows * new) * plain // batch.decodes + plain
        context, own_read = context - own, read * plain // batch.decodes
        read -= own_read
        beside = beside._replace(
            decode_sequences=plain,
            decode_context_tokens=own,
            decode_windowed_tokens=own_read,
            logit_rows=beside.logit_rows + plain,
        )
    return add_verification(beside, rows, new, context, read if windowed else None)


def _windowed(batch: Batch, window: int) -> tuple[int, int]:
    tokens = pair_count = 0
    for chunk in batch.chunks:
        end = chunk.computed_tokens + chunk.new_tokens
        tokens += min(end, window + chunk.new_tokens)
        pair_count += windowed_pairs(chunk.computed_tokens, end, window)
    return tokens, pair_count
