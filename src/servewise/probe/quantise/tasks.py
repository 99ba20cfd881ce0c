"""Exact match on a task file: prompts answered greedily. Legend: T new tokens, R rows of logits, V vocabulary."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import torch

from servewise.engine.checkpoint import Tokenizer
from servewise.engine.step import Model, StepInput
from servewise.errors import InputError
from servewise.probe.quantise.passages import BLOCK_TOKENS, read_text

SPARE_TOKENS = 8  # beyond the answer's own: it may be said in other tokens


@dataclass(frozen=True, slots=True)
class Task:
    """A prompt's tokens and the answer that its continuation must begin with, white space at the ends aside."""

    prompt: tuple[int, ...]
    answer: str
    most_tokens: int


def read_tasks(path: str | Path, tokenizer: Tokenizer, most_tokens: int) -> tuple[Task, ...]:
    """Tasks of a file of JSON lines ``{"prompt", "answer"}``; InputError names the line that is wrong.

    ``most_tokens``: what prompt and answer may have together, the model's context.
    """
    lines = [(number, line) for number, line in enumerate(read_text(path).splitlines(), 1) if line.strip()]
    if not lines:
        raise InputError("holds no task", where=str(path))
    return tuple(_task(line, tokenizer, most_tokens, f"{path}, line {number}") for number, line in lines)


def _task(line: str, tokenizer: Tokenizer, most_tokens: int, where: str) -> Task:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or set(found) != {"prompt", "answer"}:
        raise InputError('must be {"prompt": ..., "answer": ...} and nothing else', where=where)
    prompt, answer = found["prompt"], found["answer"]
    if not (isinstance(prompt, str) and isinstance(answer, str) and prompt and answer.strip()):
        raise InputError("prompt and answer must be text, and not empty", where=where)
    task = Task(tuple(tokenizer.prompt(prompt)), answer.strip(), len(tokenizer.encode(answer)) + SPARE_TOKENS)
    if len(task.prompt) + task.most_tokens > most_tokens:
        raise InputError(f"is longer than the model's context of {most_tokens} tokens", where=where)
    return task


def matches(model: Model, tasks: tuple[Task, ...], tokenizer: Tokenizer, device: torch.device) -> list[float]:
    """1 for each task whose greedy continuation begins with the answer, else 0."""
    said = (_continued(model, task, tokenizer, device) for task in tasks)
    return [float(text.strip().startswith(task.answer)) for text, task in zip(said, tasks, strict=True)]


def _continued(model: Model, task: Task, tokenizer: Tokenizer, device: torch.device) -> str:
    length = len(task.prompt) + task.most_tokens
    blocks = -(-length // BLOCK_TOKENS)
    cache = model.new_cache(blocks, BLOCK_TOKENS)
    said: list[int] = []
    new, start = list(task.prompt), 0
    while len(said) < task.most_tokens:
        token = int(model.step(_step(new, start, blocks, device), cache)[0].argmax())
        if token in model.config.end_tokens:
            break
        said.append(token)
        new, start = [token], start + len(new)
    return tokenizer.decode(said)


def _step(new: list[int], start: int, blocks: int, device: torch.device) -> StepInput:
    positions_T = torch.arange(start, start + len(new), device=device)
    return StepInput(
        tokens_T=torch.tensor(new, device=device),
        positions_T=positions_T,
        slots_T=positions_T,
        query_starts=(0, len(new)),
        context_tokens=(start + len(new),),
        block_tables=(tuple(range(blocks)),),
        rows_R=torch.tensor([len(new) - 1], device=device),
    )
