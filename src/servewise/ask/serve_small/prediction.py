"""What the simulator says of the batching policies, calibrated on other runs of the same server: at 1 and 8 streams.

No run that is predicted is fitted: the calibrating ones have answers of one length and are those of the part "16-bit".
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from servewise.ask.calibrate import calibrate
from servewise.ask.deploying import deploy
from servewise.ask.foretelling import Load, foretell
from servewise.ask.serve_small.machine import peak_flops_per_s
from servewise.ask.serve_small.session import is_whole
from servewise.ask.serve_small.variants import BATCH, Variant
from servewise.ask.serve_small.wanted import Wanted
from servewise.atomic import replace_whole
from servewise.batching.policies import Continuous, Dynamic, Policy, Static
from servewise.engine.checkpoints.library import find_checkpoint
from servewise.errors import ServewiseError
from servewise.plan.clock import clock_for
from servewise.plan.server import Server
from servewise.probe.ops.machine import Machine

CALIBRATING = (1, BATCH)
SLOTS = 64  # of the calibrating runs: more than their streams, so that it never decides
MACHINE = "machine.json"
WINDOW_S = {"none": 1e-6, "dynamic": 0.05}  # llama.cpp waits for nothing but the running batch's end
BATCHED = {"llamacpp": 2048, "own": 512, "vllm": 2048}  # new tokens a step: --batch-size, --max-num-batched-tokens
SHOWN = {"ttft_p50_s": ("ttft", "p50"), "tpot_p50_s": ("tpot", "p50"), "e2e_p50_s": ("e2e", "p50")}


def add_predictions(
    rows: Sequence[dict[str, Any]], variants: Sequence[Variant], wanted: Wanted, folder: Path, machine: Machine
) -> list[dict[str, Any]]:
    """The rows, those of batching policies with ``predicted``: figures, or ``why_not`` in words."""
    named = {each.name: each for each in variants if each.part == "batching"}
    if not any(row["variant"] in named for row in rows):
        return list(rows)
    numbers = _machine_numbers(rows, folder, machine)
    model = find_checkpoint(wanted.model)
    return [
        row | {"predicted": predicted(named[row["variant"]], wanted, folder, model, numbers)}
        if row["variant"] in named
        else row
        for row in rows
    ]


def _machine_numbers(rows: Sequence[Mapping[str, Any]], folder: Path, machine: Machine) -> dict[str, float]:
    """Peak, bandwidth and memory, measured once for the folder: a calibration holds for one machine."""
    path = folder / MACHINE
    try:
        found = json.loads(path.read_text("utf-8"))
        return {name: float(found[name]) for name in ("peak_flops", "bandwidth", "memory")}
    except (OSError, ValueError, KeyError, TypeError):
        numbers = {
            "peak_flops": peak_flops_per_s(machine),
            "bandwidth": max(float(row["bandwidth_bytes_per_s"] or 0.0) for row in rows) or 1e9,
            "memory": float(machine.memory_bytes),
        }
        replace_whole(path, json.dumps(numbers).encode())
        return numbers


def predicted(
    variant: Variant, wanted: Wanted, folder: Path, model: Path, machine: Mapping[str, float]
) -> dict[str, Any]:
    """The figures of ``variant``'s run of mixed lengths, or ``why_not``.

    ``folder`` holds the variants' folders, ``machine`` its peak_flops, bandwidth and memory.
    """
    runs = [
        directory
        for streams in CALIBRATING
        for directory in sorted((folder / f"{variant.server}-bf16").glob(f"concurrency-{streams}-*"))
        if is_whole(directory)
    ]
    if not runs:
        return {"why_not": "no run of the same server at 1 and 8 streams to calibrate on (part 16-bit)"}
    target = folder / f"calibration-{variant.server}.toml"
    options: dict[str, Any] = {
        **machine,
        "weights": "bf16",
        "engine": "ideal",
        "max_batched_tokens": BATCHED[variant.server],
        "max_context": wanted.context_tokens,
    }
    try:
        if not target.exists() or target.stat().st_mtime < max((each / "run.json").stat().st_mtime for each in runs):
            calibrate(runs, str(model), slots=SLOTS, output=target, **options)
        deployment = deploy(str(model), None, max_sequences=BATCH, **options)
        clock = clock_for(deployment, str(target))
        server = Server(policy=_policy(variant), estimator=clock, blocks=None, block_tokens=16)
        load = wanted.load(variant, BATCH)
        assert load.requests is not None
        found = foretell(
            server, Load(requests=load.requests, prompts=load.input_tokens, outputs=load.output_tokens, streams=BATCH)
        )
    except ServewiseError as error:
        return {"why_not": str(error)}
    figures = {name: getattr(getattr(found, latency), at) for name, (latency, at) in SHOWN.items()}
    return {"output_tokens_per_s": found.output_tokens_per_s, **figures, "calibrated_on": [each.name for each in runs]}


def _policy(variant: Variant) -> Policy:
    if variant.batching == "static":
        return Static(BATCH)
    if variant.batching in WINDOW_S:
        return Dynamic(BATCH, WINDOW_S[variant.batching])
    return Continuous(max_sequences=BATCH, max_batched_tokens=BATCHED[variant.server])
