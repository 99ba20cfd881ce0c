"""What does this machine do? Bandwidth, FLOP/s, a model's operations and steps, as files that predictions take."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from servewise.answer import Answer
from servewise.ask.numbers import whole, wholes
from servewise.caveats import Caveat, unique
from servewise.conditions import Conditions
from servewise.engine.checkpoint import load_checkpoint
from servewise.engine.checkpoints.library import find_checkpoint
from servewise.engine.decoder.load import load_decoder
from servewise.engine.step import Model
from servewise.errors import InputError, UnknownName
from servewise.modelspec.load import load_model
from servewise.modelspec.spec import ModelSpec
from servewise.probe.ops.accelerator_file import Measured, accelerator_toml, slug
from servewise.probe.ops.machine import Machine, this_machine
from servewise.probe.ops.operation import DTYPES, dtype_named
from servewise.probe.ops.survey import Scope, Timed, reached_bandwidth, reached_peak, survey
from servewise.probe.ops.timing import Timing
from servewise.probe.steps import StepKey, TimedStep, step_keys, table_csv, time_steps
from servewise.version import __version__

Progress = Callable[[int, int], None]

BATCHES, CONTEXTS, PROMPTS = (1, 2, 4, 8, 16, 32), (64, 256, 1024), (16, 64, 256, 1024)
SMOKE = Scope(  # for tests: everything once, on next to nothing
    working_sets=(2**24,),
    gemm_sides=(64, 128),
    tokens=(1, 8),
    batches=(1, 2),
    contexts=(32,),
    samples=3,
    patience_s=0.01,
)


def probe_ops(
    model: str | None = None,
    *,
    dtypes: Sequence[str] = ("float32", "bfloat16"),
    device: str = "cpu",
    threads: int | None = None,
    passes: int = 3,
    batches: int | Iterable[int] = BATCHES,
    contexts: int | Iterable[int] = CONTEXTS,
    prompts: int | Iterable[int] = PROMPTS,
    accelerator_out: str | Path | None = None,
    steps_out: str | Path | None = None,
    scope: Scope | None = None,
    progress: Progress | None = None,
) -> Answer:
    """Measured memory bandwidth and FLOP/s of this machine, and for a ``model`` the times of its operations and steps.

    ``model``: a checkpoint (its engine steps are timed too, in the first of ``dtypes``, decode at ``batches`` x
    ``contexts`` and prompts of ``prompts`` tokens) or any model with a config (its operations alone).
    ``accelerator_out`` gets the machine as a TOML file for ``--accelerator``, ``steps_out`` the steps as a table for
    ``--estimator``. ``scope`` overrides what else is timed. Sets the process's thread count.
    """
    for each in dtypes:
        dtype_named(each)
    whole(passes, "passes", most=100)
    machine = this_machine(device, threads)
    spec = None if model is None else spec_named(model)
    chosen = replace(scope or Scope(), dtypes=tuple(dtypes), passes=passes)
    decoder = _decoder(model, dtypes[0], device)
    if decoder is None and steps_out is not None:
        raise InputError("steps are those of a model", where="steps_out", hint="give a local checkpoint as MODEL")
    keys = list(step_keys(wholes(batches, "batches"), wholes(contexts, "contexts"), wholes(prompts, "prompts")))
    timed = survey(chosen, spec, machine, progress)
    steps = [] if decoder is None else _timed_steps(decoder, keys, machine, chosen, progress)
    bandwidth = reached_bandwidth(timed, spec, dtypes)
    peaks = {dtype: reached_peak(timed, dtype) for dtype in dtypes}
    if accelerator_out is not None:
        _write(accelerator_out, accelerator_toml(machine, bandwidth, peaks, date=_today(), software=_software(machine)))
    if steps_out is not None:
        _write(steps_out, table_csv(steps))
    return Answer(
        command="probe-ops",
        conditions=Conditions(
            hardware=f"1 x {machine}",
            load=f"{chosen.passes} passes of {chosen.samples} samples",
            lengths=_lengths(steps, chosen, spec),
            precision=", ".join(dtypes),
            model=None if spec is None else spec.name,
            engine=_software(machine),
            version=__version__,
        ),
        result=_result(machine, bandwidth, peaks, timed, steps),
        caveats=_caveats([each.timing for each in timed] + [each.timing for each in steps]),
    )


def spec_named(model: str) -> ModelSpec:
    """The model of a local checkpoint's name or path, or of any name that ``size`` takes."""
    try:
        return load_model(str(find_checkpoint(model)))
    except UnknownName:
        return load_model(model)


def _decoder(model: str | None, dtype: str, device: str) -> Model | None:
    """The checkpoint's decoder; None where the model is known by its config alone."""
    if model is None:
        return None
    try:
        path = find_checkpoint(model)
    except UnknownName:
        return None
    if path.is_dir() and not any((*path.glob("*.safetensors"), *path.glob("*.gguf"))):
        return None
    return load_decoder(load_checkpoint(path), dtype=dtype_named(dtype), device=device)


def _timed_steps(
    decoder: Model, keys: Sequence[StepKey], machine: Machine, scope: Scope, progress: Progress | None
) -> list[TimedStep]:
    """The steps that the model's context holds."""
    held = [each for each in keys if each.context_tokens <= decoder.config.max_context_tokens]
    if not held:
        raise InputError("no step fits into the model's context", where="contexts", hint="give shorter ones")
    return time_steps(
        decoder,
        held,
        machine,
        passes=scope.passes,
        samples=scope.samples,
        patience_s=scope.patience_s,
        progress=progress,
    )


def _result(
    machine: Machine,
    bandwidth: Measured,
    peaks: dict[str, Measured],
    timed: Sequence[Timed],
    steps: Sequence[TimedStep],
) -> dict[str, Any]:
    kinds = {"memory": ("read", "copy", "gemv"), "products": ("gemm", "product"), "attention": ("attention",)}
    return (
        {
            "machine": {
                "name": slug(machine.title),
                "title": machine.title,
                "device": machine.device,
                "threads": machine.threads,
                "memory_bytes": machine.memory_bytes,
            },
            "bandwidth_bytes_per_s": bandwidth.value,
            "bandwidth_note": bandwidth.note,
            "peaks": [
                {"dtype": dtype, "format": DTYPES[dtype][1], "flops_per_s": each.value, "note": each.note}
                for dtype, each in peaks.items()
            ],
        }
        | {name: [_row(each) for each in timed if each.operation.kind in members] for name, members in kinds.items()}
        | {"steps": [each.key._asdict() | _times(each.timing, "step_s") for each in steps]}
    )


def _row(timed: Timed) -> dict[str, Any]:
    operation = timed.operation
    rates = {"bytes_per_s": timed.bytes_per_s} | ({"flops_per_s": timed.flops_per_s} if operation.flops else {})
    named = {"kind": operation.kind, "name": operation.name, "dtype": operation.dtype}
    return named | dict(operation.shape) | _times(timed.timing, "median_s") | rates


def _times(timing: Timing, median: str) -> dict[str, Any]:
    return {
        median: timing.median_s,
        "p10_s": timing.p10_s,
        "p90_s": timing.p90_s,
        "samples": timing.samples,
        "disturbed_samples": timing.disturbed,
        "undisturbed": timing.clean,
    }


def _lengths(steps: Sequence[TimedStep], scope: Scope, spec: ModelSpec | None) -> str:
    contexts = sorted({each.key.context_tokens for each in steps}) or (list(scope.contexts) if spec else [])
    return f"contexts of {', '.join(map(str, contexts))} tokens" if contexts else "none"


def _caveats(timings: Sequence[Timing]) -> tuple[Caveat, ...]:
    unclean = sum(not each.clean for each in timings)
    if not unclean:
        return ()
    message = f"other programs held up {unclean} of {len(timings)} timings: the least disturbed samples stand for them"
    return unique((Caveat("disturbed", message, "measure on an idle machine, or with --threads 1"),))


def _software(machine: Machine) -> str:
    threads = f", {machine.threads} threads" if machine.threads else ""
    return f"PyTorch {torch.__version__}{threads}"


def _today() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d")


def _write(target: str | Path, text: str) -> None:
    """``text`` in the file at ``target``; InputError where it cannot be written."""
    try:
        Path(target).write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot be written ({error.strerror or error})", where=str(target)) from error
