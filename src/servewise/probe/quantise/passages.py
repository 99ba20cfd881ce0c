"""The evaluation text as sequences of tokens, and a model's logits at each of their positions.

Legend: T new tokens of a step, R rows of logits, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import torch
from torch import Tensor

from servewise.engine.checkpoint import Tokenizer
from servewise.engine.step import Model, StepInput
from servewise.errors import InputError

MOST_TEXT_BYTES = 100_000_000
BLOCK_TOKENS = 16
STEP_TOKENS = 512


@dataclass(frozen=True, slots=True)
class Passage:
    """A sequence of the text: its ``inputs``, and for each the token that follows."""

    inputs: tuple[int, ...]
    targets: tuple[int, ...]


def built_in(name: str) -> str:
    """A text that comes with the package: ``evaluation`` or ``calibration``."""
    return resources.files(__package__).joinpath("texts", f"{name}.txt").read_text("utf-8")


def read_text(path: str | Path) -> str:
    """The text of a file; InputError where it cannot be read, is no UTF-8 or too large."""
    try:
        with Path(path).open("rb") as file:
            data = file.read(MOST_TEXT_BYTES + 1)
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read: {getattr(error, 'strerror', None) or error}", where=str(path)) from None
    if len(data) > MOST_TEXT_BYTES:
        raise InputError(f"is larger than {MOST_TEXT_BYTES:,} bytes", where=str(path), hint="cut it")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError("is not UTF-8 text", where=str(path)) from None


def passages(text: str, tokenizer: Tokenizer, *, length: int, most: int, where: str) -> tuple[Passage, ...]:
    """The text cut into sequences of ``length`` tokens, at most ``most``, spread over the text.

    Each begins with what the model expects before a prompt (Llama's begin token, for many models nothing). Raises
    InputError where the text gives less than two sequences: an interval needs more than one.
    """
    tokens, begin = tokenizer.encode(text), tuple(tokenizer.prompt(""))
    span = length - len(begin)
    count = (len(tokens) - 1) // span if span > 0 else 0
    if count < 2:
        what = f"has {len(tokens)} tokens, too few for two sequences of {length}"
        raise InputError(what, where=where, hint="shorter sequences, or more text")
    chosen = range(count) if count <= most else [index * count // most for index in range(most)]
    cut = (begin + tuple(tokens[index * span : (index + 1) * span + 1]) for index in chosen)
    return tuple(Passage(each[:-1], each[1:]) for each in cut)


def logits_by_row(
    model: Model, some: Sequence[Passage], *, chunk: int, device: torch.device
) -> Iterator[tuple[slice, int, Tensor]]:
    """(positions, index of the passage, (R, V) logits) as they are computed, ``chunk`` positions of a passage a step.

    With chunks of a block, what a position reads of the cache is what it would read when decoding token by token: its
    own block as it is, earlier ones as they are kept.
    """
    length = len(some[0].inputs)
    together = max(1, STEP_TOKENS // min(chunk, length))
    for first in range(0, len(some), together):
        members = range(first, min(first + together, len(some)))
        blocks = -(-length // BLOCK_TOKENS)
        cache = model.new_cache(blocks * len(members), BLOCK_TOKENS)
        for start in range(0, length, chunk):
            end = min(start + chunk, length)
            step = _step([some[index].inputs for index in members], start, end, blocks, device)
            logits_RV = model.step(step, cache)
            for row, index in enumerate(members):
                yield slice(start, end), index, logits_RV[row * (end - start) : (row + 1) * (end - start)]


def _step(sequences: Sequence[tuple[int, ...]], start: int, end: int, blocks: int, device: torch.device) -> StepInput:
    span = end - start
    positions_T = torch.arange(start, end, device=device).repeat(len(sequences))
    first_slots_T = torch.arange(len(sequences), device=device).repeat_interleave(span) * blocks * BLOCK_TOKENS
    return StepInput(
        tokens_T=torch.tensor([token for each in sequences for token in each[start:end]], device=device),
        positions_T=positions_T,
        slots_T=first_slots_T + positions_T,
        query_starts=tuple(range(0, span * len(sequences) + 1, span)),
        context_tokens=(end,) * len(sequences),
        block_tables=tuple(tuple(range(row * blocks, (row + 1) * blocks)) for row in range(len(sequences))),
        rows_R=torch.arange(span * len(sequences), device=device),
    )
