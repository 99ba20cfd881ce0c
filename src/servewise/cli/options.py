"""Options that several commands share, each written once."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from servewise.cli.names import ACCELERATOR, ENGINE, EXECUTOR, MODEL
from servewise.cli.progress import usable_cores
from servewise.cli.quantities import BYTES_PER_S, DURATION, FLOPS_PER_S, MEMORY, NUMBER, WHOLE
from servewise.errors import InputError

F = TypeVar("F", bound=Callable[..., Any])

ENGINES = ("ideal", "vllm", "sglang", "trtllm", "llamacpp")
PRECISION_HELP = "fp32 bf16 fp16 fp8 int8 int6 int4 int3 int2 nvfp4 mxfp4 ..., or NAME:BITS"
EXPERT_LOAD_HELP = "With --ep: even, dirichlet:C (default 0.46), or a JSON or CSV file of tokens by layer and expert."

_DEPLOYMENT = (
    click.option("--count", type=WHOLE, help="Accelerators in all; default tp x pp."),
    click.option("--tp", type=WHOLE, help="Tensor-parallel degree; default: all accelerators of --count."),
    click.option("--pp", type=WHOLE, help="Pipeline-parallel degree."),
    click.option("--ep", is_flag=True, help="Experts are spread over all accelerators (expert parallel)."),
    click.option("--expert-load", metavar="L", help=EXPERT_LOAD_HELP),
    click.option("--redundant-experts", type=WHOLE, metavar="N", help="Copies of experts, all placed by EPLB; or 0."),
    click.option("--dcp", type=WHOLE, metavar="N", help="Tensor ranks that share out the KV cache's tokens."),
    click.option("--weights", metavar="P", help=f"Precision of the weights: {PRECISION_HELP}. Default: the model's."),
    click.option("--kv", metavar="P", help="Precision of the KV cache; default: 16 bits."),
    click.option(
        "--activations",
        metavar="P",
        help="Precision computed in; default: fp8 with fp8 weights on chips with fp8.",
    ),
    click.option(
        "--engine", type=ENGINE, default="vllm", show_default=True, metavar="|".join(ENGINES), help="Whose habits hold."
    ),
    click.option("--memory-utilization", type=NUMBER, metavar="F", help="Share of memory the engine may take."),
    click.option("--max-batched-tokens", type=WHOLE, metavar="N", help="New tokens a step at most."),
    click.option("--max-sequences", type=WHOLE, metavar="N", help="Sequences at once at most (max_num_seqs)."),
    click.option("--max-context", type=WHOLE, metavar="T", help="Longest context served (max_model_len)."),
    click.option("--block-tokens", type=WHOLE, metavar="N", help="Tokens a KV block."),
    click.option("--kv-heads", type=WHOLE, metavar="N", help="As if the model kept N key-value heads a layer."),
)
_OWN_NUMBERS = (
    click.option("--peak-flops", type=FLOPS_PER_S, metavar="X", help="Your own dense peak, e.g. 312T [FLOP/s]."),
    click.option("--bandwidth", type=BYTES_PER_S, metavar="X", help="Your own memory bandwidth, e.g. 2TB/s."),
    click.option("--memory", type=MEMORY, metavar="X", help="Your own memory size, e.g. 80GB or 79.25GiB."),
)

_SPECULATION = (
    click.option("--speculate", metavar="D", help="Who drafts: draft:MODEL, ngram, eagle, eagle3, mtp or medusa."),
    click.option(
        "--acceptance", metavar="A,...", help="Share of draft tokens that stand: one rate, or one a position."
    ),
    click.option(
        "--draft-tokens", type=WHOLE, default=3, show_default=True, metavar="K", help="Tokens drafted a step."
    ),
    click.option("--draft-length", default="fixed", show_default=True, metavar="fixed|best|measured"),
    click.option("--speculate-until-batch", type=WHOLE, metavar="N", help="No drafts above N decoding sequences."),
    click.option(
        "--hit-rate", type=NUMBER, default=1.0, show_default=True, metavar="F", help="How often an n-gram matches."
    ),
    click.option(
        "--draft-overhead", type=DURATION, default="0s", metavar="T", help="The engine's own time a draft pass."
    ),
)


def deployment_options(*, model_required: bool = True) -> Callable[[F], F]:
    """MODEL, --accelerator and all that says how the model is deployed; names as in ``servewise.ask``."""
    model = click.argument("model", type=MODEL, required=model_required)
    return lambda function: _add(function, (model, accelerator_option, *_DEPLOYMENT, *_OWN_NUMBERS))


def accelerator_option(function: F) -> F:
    """--accelerator."""
    text = "Catalogue name (a100-80gb) or TOML file; not needed with --peak-flops, --bandwidth and --memory."
    return click.option("--accelerator", type=ACCELERATOR, metavar="A", help=text)(function)


def estimator_option(function: F) -> F:
    """--estimator."""
    text = "What times a step: measured kernels (default), the same inside a measured server, the roofline, or a file."
    kinds = "ideal|calibrated|served|FILE"
    return click.option("--estimator", metavar=kinds, help=text)(function)


def speculation_options(function: F) -> F:
    """--speculate and what belongs to it; names as in ``servewise.ask``."""
    return _add(function, _SPECULATION)


def seed_options(function: F) -> F:
    """--seed and --seeds."""
    first = click.option("--seed", type=WHOLE, default=0, show_default=True, help="The first seed.")
    text = "How many seeds; a trace is the same for all."
    return first(click.option("--seeds", type=WHOLE, default=5, show_default=True, help=text)(function))


def processes_option(function: F) -> F:
    """--processes; the command gets how many."""
    text = "Default: all cores; results do not depend on it."
    return click.option("--processes", type=WHOLE, metavar="N", callback=_processes, help=text)(function)


def executor_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """--processes, --executor and --keep; the command gets the ``executor`` that they make."""

    @functools.wraps(function)
    def command(*args: Any, processes: int, executor: str, keep: str | None, **kwargs: Any) -> Any:
        from servewise.executing.executor import LOCAL, executor_named

        usual = None if executor == LOCAL else _cache()
        return function(
            *args, executor=executor_named(executor, processes, keep or usual, forget=keep is None), **kwargs
        )

    where = (
        "local: this machine's processes. ray: a Ray cluster, the one that runs here or RAY_ADDRESS, else one begun "
    )
    where += "for this; or its address, ray://HOST:PORT or HOST:PORT."
    text = "Finished tasks are kept here, and the same command goes on from them. With ray: in the cache, until done."
    keep_option = click.option("--keep", metavar="FOLDER", help=text)(command)
    named = click.option("--executor", type=EXECUTOR, default="local", metavar="local|ray|ADDRESS", help=where)
    return processes_option(named(keep_option))


def _cache() -> Path | None:
    """Where a sweep on a cluster is kept while it goes on; None where nothing can be written."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "servewise" / "kept"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return folder if os.access(folder, os.W_OK) else None


def _processes(_: click.Context, __: click.Parameter, value: int | None) -> int:
    if value is not None and value < 1:
        raise InputError(f"must be at least 1, not {value}", where="processes")
    return value or usable_cores()


def _add(function: F, decorators: tuple[Callable[[F], F], ...]) -> F:
    for decorate in reversed(decorators):
        function = decorate(function)
    return function
