"""From a variant to the launcher of its server, with its environment and its file of the model."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from servewise.ask.serve_small.files import ModelFiles
from servewise.ask.serve_small.variants import Variant
from servewise.ask.serve_small.wanted import Wanted
from servewise.measure.servers.environment import make
from servewise.measure.servers.launch import Launcher
from servewise.measure.servers.llamacpp import LLAMACPP_RECIPE, LlamaCpp
from servewise.measure.servers.own import Own
from servewise.measure.servers.vllm import VLLM_RECIPE, Vllm

NAME = "model"  # what clients call the model on every server


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where things are kept: ``environments`` of servers, ``models`` in their formats.

    ``llama_server``: a program to use in place of the packaged one.
    """

    environments: Path
    models: Path
    llama_server: Path | None = None


def launcher_of(
    variant: Variant, wanted: Wanted, files: ModelFiles, places: Places, tell: Callable[[str], None]
) -> Launcher:
    """The launcher; makes the environment and writes the file where they are not there yet."""
    slots = max(variant.streams)
    if variant.server == "llamacpp":
        program = places.llama_server
        return LlamaCpp(
            gguf=files.gguf(variant.weights),
            model=NAME,
            program=program,
            python=None if program else make(LLAMACPP_RECIPE, places.environments, tell=tell),
            slots=slots,
            context_tokens=wanted.context_tokens,
            threads=wanted.threads,
            continuous=variant.batching == "continuous",
            prefix_cache=variant.prefix_cache,
        )
    if variant.server == "own":
        return Own(
            checkpoint=files.folder(),
            model=NAME,
            slots=slots,
            context_tokens=wanted.context_tokens,
            threads=wanted.threads,
            policy=variant.batching,
            prefix_cache=variant.prefix_cache,
        )
    return Vllm(
        folder=files.int8_folder() if variant.weights == "int8" else files.folder(),
        model=NAME,
        python=make(VLLM_RECIPE, places.environments, tell=tell),
        slots=slots,
        context_tokens=wanted.context_tokens,
        cores=tuple(_cores()[: wanted.threads]),
        prefix_cache=variant.prefix_cache,
    )


def _cores() -> list[int]:
    """The processors that this program may use, by number."""
    affinity = getattr(os, "sched_getaffinity", None)
    return sorted(affinity(0)) if affinity else list(range(os.cpu_count() or 1))
