"""Steps of the engine's model by shape, timed: what a table of step times is made of.

Legend: T new tokens, R rows whose logits are wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import torch

from servewise.engine.step import Model, StepInput
from servewise.errors import InputError
from servewise.probe.ops.machine import Machine
from servewise.probe.ops.timing import PATIENCE_S, Sample, Timing, sample, timing_of

BLOCK_TOKENS = 16
TABLE_HEADER = "phase,batch,context_tokens,step_s"


class StepKey(NamedTuple):
    """``decode``: ``batch`` sequences of one new token at ``context_tokens`` each; ``prefill``: whole prompts."""

    phase: str
    batch: int
    context_tokens: int


class TimedStep(NamedTuple):
    """A step's shape with its timing."""

    key: StepKey
    timing: Timing


def step_of(key: StepKey, vocabulary: int, block_tokens: int = BLOCK_TOKENS) -> StepInput:
    """The step's tensors: tokens in a fixed pattern over the vocabulary, each sequence in blocks of its own."""
    phase, batch, context = key
    new = 1 if phase == "decode" else context
    per = -(-context // block_tokens)
    tables = tuple(tuple(range(s * per, (s + 1) * per)) for s in range(batch))
    positions = torch.arange(context - new, context).repeat(batch)
    first_slots = torch.arange(batch).repeat_interleave(new) * (per * block_tokens)
    return StepInput(
        tokens_T=(torch.arange(batch * new) * 7919 + 17) % vocabulary,
        positions_T=positions,
        slots_T=first_slots + positions,
        query_starts=tuple(range(0, batch * new + 1, new)),
        context_tokens=(context,) * batch,
        block_tables=tables,
        rows_R=torch.arange(new - 1, batch * new, new),
    )


def step_keys(batches: Sequence[int], contexts: Sequence[int], prompts: Sequence[int]) -> Iterator[StepKey]:
    """Decode at every batch and context, one whole prompt of every length."""
    yield from (StepKey("decode", batch, context) for context in contexts for batch in batches)
    yield from (StepKey("prefill", 1, tokens) for tokens in prompts)


def time_steps(
    model: Model,
    keys: Sequence[StepKey],
    machine: Machine,
    *,
    passes: int,
    samples: int = 5,
    patience_s: float = PATIENCE_S,
    progress: Callable[[int, int], None] | None = None,
) -> list[TimedStep]:
    """Each step's timing over ``passes`` visits, on a cache that holds the largest of them.

    Raises InputError for a context beyond the model's.
    """
    longest = max(key.context_tokens for key in keys)
    if longest > model.config.max_context_tokens:
        what = f"{longest} tokens are beyond the model's context of {model.config.max_context_tokens}"
        raise InputError(what, where="contexts", hint="give shorter ones")
    blocks = max(key.batch * -(-key.context_tokens // BLOCK_TOKENS) for key in keys)
    cache = model.new_cache(blocks, BLOCK_TOKENS)
    found: list[list[Sample]] = [[] for _ in keys]
    for turn in range(passes):
        for place, key in enumerate(keys):
            step = step_of(key, model.config.vocabulary)
            call = partial(model.step, step, cache)
            found[place] += sample(call, machine, samples, patience_s)
            if progress is not None:
                progress(turn * len(keys) + place + 1, passes * len(keys))
    return [TimedStep(key, timing_of(each)) for key, each in zip(keys, found, strict=True)]


def table_csv(steps: Sequence[TimedStep]) -> str:
    """The steps as a file for ``--estimator FILE``."""
    rows = [f"{each.key.phase},{each.key.batch},{each.key.context_tokens},{each.timing.median_s:.6g}" for each in steps]
    return "\n".join([TABLE_HEADER, *rows]) + "\n"
