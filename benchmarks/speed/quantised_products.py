"""Do packed weights pay: products and decode steps with PyTorch's int8 and int4 kernels against its own bf16?

Question: at which numbers of tokens is a product with packed weights faster than the dense one, and is a decode step?

Method: the shapes of SmolLM2-135M's layers and a 4096 x 4096 matrix; each round runs every kind once, in turn; the
ratio is that of the best times over the rounds. One thread. Below 1: faster than bf16. Bytes are those kept.

Run: python -m benchmarks.speed.quantised_products (two minutes; the model's part is left out where it is not there)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial

import torch

from benchmarks.record import save, table
from servewise.engine.checkpoint import load_checkpoint
from servewise.engine.decoder.decoder import Decoder
from servewise.engine.decoder.linear import DenseLinear, Linear
from servewise.engine.decoder.load import load_decoder
from servewise.engine.quantised.grid import Grid
from servewise.engine.quantised.matrix import round_to_nearest
from servewise.engine.quantised.model import quantise
from servewise.engine.quantised.products import Int4Linear, Int8Int8Linear, Int8Linear
from servewise.engine.quantised.scheme import Scheme
from servewise.errors import InputError
from servewise.probe.steps import BLOCK_TOKENS, StepKey, step_of

SHAPES = ((960, 576), (3072, 576), (576, 1536), (4096, 4096))
TOKENS = (1, 4, 8, 32)
ROUNDS, STEP_ROUNDS = 15, 6
BATCHES, CONTEXT = (1, 8, 32), 128
EIGHT, FOUR = Grid(bits=8, scales="bf16"), Grid(bits=4, group=32, symmetric=False, scales="bf16")
SCHEMES = {
    "int8 weights": Scheme(weights=EIGHT, packed=True),
    "int4 weights, group 32": Scheme(weights=FOUR, packed=True),
    "int8 weights and activations": Scheme(weights=EIGHT, activations=True, packed=True),
}


def products(outputs: int, inputs: int) -> dict[str, tuple[Linear, int]]:
    """Every kind of product with one random matrix, and the bytes that it keeps."""
    weight = torch.randn(outputs, inputs, generator=torch.Generator().manual_seed(0)) * 0.05
    eight, four = (round_to_nearest(weight, grid) for grid in (EIGHT, FOUR))
    dense = weight.bfloat16()
    packed: tuple[Int8Linear | Int4Linear | Int8Int8Linear, ...] = (
        Int8Linear(eight, None),
        Int4Linear(four, None),
        Int8Int8Linear(eight, None),
    )
    found: dict[str, tuple[Linear, int]] = {"bf16": (DenseLinear(dense), dense.nbytes)}
    return found | {name: (each, each.stored_bytes) for name, each in zip(SCHEMES, packed, strict=True)}


def best_times(runs: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """The best time of each run [s], the runs taking turns."""
    best = dict.fromkeys(runs, float("inf"))
    for _ in range(rounds):
        for name, run in runs.items():
            began = time.perf_counter()
            run()
            best[name] = min(best[name], time.perf_counter() - began)
    return best


@torch.inference_mode()
def product_rows() -> list[dict[str, object]]:
    """Ratios to bf16 by shape and tokens."""
    rows: list[dict[str, object]] = []
    for shape in SHAPES:
        kinds = products(*shape)
        for tokens in TOKENS:
            x = torch.randn(tokens, shape[1]).bfloat16()
            times = best_times({name: partial(each, x) for name, (each, _) in kinds.items()}, ROUNDS)
            for name, (_, kept) in kinds.items():
                rows.append(
                    {
                        "outputs": shape[0],
                        "inputs": shape[1],
                        "tokens": tokens,
                        "kind": name,
                        "best_s": times[name],
                        "time_ratio": times[name] / times["bf16"],
                        "weight_bytes": kept,
                    }
                )
    return rows


def step_rows() -> list[dict[str, object]]:
    """Ratios of whole decode steps to bf16's by batch."""
    decoder = load_decoder(load_checkpoint("smollm2-135m-instruct"), dtype=torch.bfloat16)
    models: dict[str, Decoder] = {"bf16": decoder}
    models |= {name: quantise(decoder, scheme) for name, scheme in SCHEMES.items()}
    rows: list[dict[str, object]] = []
    for batch in BATCHES:
        step = step_of(StepKey("decode", batch, CONTEXT), decoder.config.vocabulary)
        blocks = batch * -(-CONTEXT // BLOCK_TOKENS)
        runs = {name: partial(model.step, step, model.new_cache(blocks)) for name, model in models.items()}
        times = best_times(runs, STEP_ROUNDS)
        rows += [
            {"batch": batch, "kind": name, "best_s": times[name], "time_ratio": times[name] / times["bf16"]}
            for name in models
        ]
    return rows


def main() -> None:
    """Print the tables and keep them."""
    torch.set_num_threads(1)
    found = product_rows()
    table(
        ("matrix", "tokens", "kind", "time / bf16", "bytes"),
        [(f"{r['outputs']}x{r['inputs']}", r["tokens"], r["kind"], r["time_ratio"], r["weight_bytes"]) for r in found],
    )
    try:
        steps = step_rows()
    except InputError as error:
        print(f"no decode steps: {error}")
        steps = []
    table(("batch", "kind", "time / bf16"), [(r["batch"], r["kind"], r["time_ratio"]) for r in steps])
    save("quantised_products", {"torch": torch.__version__, "threads": 1, "products": found, "decode_steps": steps})


if __name__ == "__main__":
    main()
