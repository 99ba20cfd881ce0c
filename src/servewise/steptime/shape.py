"""The shape of one step of a server: all that its time depends on."""

from __future__ import annotations

from typing import NamedTuple

from servewise.modelspec.flops import pairs, windowed_pairs


class StepShape(NamedTuple):
    """One step: decoding sequences of one new token each, and prompt chunks.

    ``decode_context_tokens`` are the KV tokens that the decoding sequences read, summed, the new token's own included;
    ``decode_windowed_tokens`` the same with each sequence's capped at the model's window. For the prompt
    chunks: ``prefill_tokens`` new tokens, ``prefill_context_tokens`` KV tokens present at the chunk's end (summed
    over chunks), ``prefill_pairs`` query-key pairs; the ``windowed`` ones again capped at the window.
    ``logit_rows`` are the positions whose logits are wanted (decoding sequences + chunks that end a prompt).
    Without windows the windowed fields are not read.
    """

    decode_sequences: int = 0
    decode_context_tokens: int = 0
    decode_windowed_tokens: int = 0
    prefill_sequences: int = 0
    prefill_tokens: int = 0
    prefill_context_tokens: int = 0
    prefill_windowed_tokens: int = 0
    prefill_pairs: int = 0
    prefill_windowed_pairs: int = 0
    logit_rows: int = 0

    @property
    def tokens(self) -> int:
        """New tokens of the step."""
        return self.decode_sequences + self.prefill_tokens


def decode_shape(batch: int, context_tokens: int, window_tokens: int | None = None) -> StepShape:
    """``batch`` sequences decode one token each at the same context (new token included)."""
    windowed = min(context_tokens, window_tokens or context_tokens)
    return StepShape(batch, batch * context_tokens, batch * windowed, logit_rows=batch)


def prefill_shape(batch: int, prompt_tokens: int, window_tokens: int | None = None) -> StepShape:
    """``batch`` whole prompts of ``prompt_tokens`` tokens each in one step."""
    return add_chunk(StepShape(), 0, prompt_tokens, window_tokens, ends_prompt=True, times=batch)


def add_chunk(
    shape: StepShape,
    computed_tokens: int,
    new_tokens: int,
    window_tokens: int | None = None,
    *,
    ends_prompt: bool = True,
    times: int = 1,
) -> StepShape:
    """``shape`` with ``times`` prompt chunks of ``new_tokens`` after ``computed_tokens`` (cached ones included)."""
    end = computed_tokens + new_tokens
    window = window_tokens or end
    return shape._replace(
        prefill_sequences=shape.prefill_sequences + times,
        prefill_tokens=shape.prefill_tokens + times * new_tokens,
        prefill_context_tokens=shape.prefill_context_tokens + times * end,
        prefill_windowed_tokens=shape.prefill_windowed_tokens + times * min(end, window + new_tokens),
        prefill_pairs=shape.prefill_pairs + times * pairs(computed_tokens, end),
        prefill_windowed_pairs=shape.prefill_windowed_pairs + times * windowed_pairs(computed_tokens, end, window),
        logit_rows=shape.logit_rows + times * ends_prompt,
    )


def add_verification(
    shape: StepShape, sequences: int, new_tokens: int, context_tokens: int, windowed_tokens: int | None = None
) -> StepShape:
    """``shape`` with ``sequences`` sequences that verify drafts: ``new_tokens`` = K + 1 tokens each.

    ``context_tokens`` are their KV tokens summed, all new ones included, ``windowed_tokens`` the same with each
    sequence's capped at the window (None: there is none). A verification is a prompt chunk whose every position's
    logits are wanted: KV is read once for the K + 1 queries, and query i of n attends to all but the last n - i tokens,
    so the pairs follow from the sums alone: n x context - sequences x n (n - 1) / 2. Within a window they are at most
    n x ``windowed_tokens``, exact where all sequences are on one side of it. Source: Leviathan et al. 2023, section 3.1
    (one parallel pass); vllm/v1/attention/backends/flash_attn.py runs both by one variable-length kernel (v0.11).
    """
    windowed = context_tokens if windowed_tokens is None else windowed_tokens
    new = sequences * new_tokens
    every_pair = new_tokens * context_tokens - new * (new_tokens - 1) // 2
    return shape._replace(
        prefill_sequences=shape.prefill_sequences + sequences,
        prefill_tokens=shape.prefill_tokens + new,
        prefill_context_tokens=shape.prefill_context_tokens + context_tokens,
        prefill_windowed_tokens=shape.prefill_windowed_tokens + min(context_tokens, windowed + new),
        prefill_pairs=shape.prefill_pairs + every_pair,
        prefill_windowed_pairs=shape.prefill_windowed_pairs + min(every_pair, new_tokens * windowed),
        logit_rows=shape.logit_rows + new,
    )
