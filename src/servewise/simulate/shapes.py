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
        verified = 1 + batch.drafted
        read = None if window_tokens is None else batch.windowed_tokens
        return add_verification(StepShape(0, 0, 0, *chunks, ends), batch.decodes, verified, batch.context_tokens, read)
    return StepShape(batch.decodes, batch.context_tokens, batch.windowed_tokens, *chunks, batch.decodes + ends)


def _windowed(batch: Batch, window: int) -> tuple[int, int]:
    tokens = pair_count = 0
    for chunk in batch.chunks:
        end = chunk.computed_tokens + chunk.new_tokens
        tokens += min(end, window + chunk.new_tokens)
        pair_count += windowed_pairs(chunk.computed_tokens, end, window)
    return tokens, pair_count
