"""The runs: what was asked of each server, how it was set, when each request was answered."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from servewise.ask.deploying import deploy
from servewise.batching.policies.vllm import Vllm
from servewise.deployment.capacity import KvCapacity, kv_capacity
from servewise.deployment.deployment import Deployment
from servewise.workload.request import Request
from servewise.workload.traces.load import load_trace

Floats = NDArray[np.float64]
DATA = Path(__file__).parents[2] / "data" / "vllm_runs"
BLOCK_TOKENS = 16


@dataclass(frozen=True)
class VllmRun:
    """One run: its files' name, and the model and accelerator by our names.

    A run at a data-parallel degree of 1; its own settings come from ``meta.json``.
    """

    name: str
    model: str
    accelerator: str

    @cached_property
    def meta(self) -> Mapping[str, Any]:
        """What the benchmark kept of the engine."""
        found: Mapping[str, Any] = json.loads((DATA / f"{self.name}_meta.json").read_text("utf-8"))
        return found

    @property
    def settings(self) -> Mapping[str, Any]:
        """The engine's arguments."""
        found: Mapping[str, Any] = self.meta["engine_kwargs"]
        return found

    @property
    def deployment(self) -> Deployment:
        """The server."""
        return deploy(
            self.model,
            self.accelerator,
            tp=self.settings["tensor_parallel_size"],
            engine=f"vllm-{self.meta['vllm_version'].rpartition('.')[0]}",
            max_sequences=self.settings["max_num_seqs"],
            max_batched_tokens=self.settings["max_num_batched_tokens"],
            max_context=self.settings["max_model_len"],
        )

    def policy(self, *, async_scheduling: bool = True) -> Vllm:
        """Its scheduler; asynchronous, as vLLM 0.19 is where nothing forbids it."""
        return Vllm(
            max_num_seqs=self.settings["max_num_seqs"],
            max_num_batched_tokens=self.settings["max_num_batched_tokens"],
            async_scheduling=async_scheduling,
        )

    @property
    def told_blocks(self) -> int | None:
        """KV blocks as the engine logged them; None: it did not."""
        return (self.meta["kv_cache"] or {}).get("num_gpu_blocks")

    @property
    def own_blocks(self) -> int:
        """KV blocks as they are worked out for the deployment."""
        capacity = kv_capacity(self.deployment)
        if not isinstance(capacity, KvCapacity) or capacity.blocks is None:
            raise AssertionError(f"{self.name} ran, so it fits")
        return capacity.blocks

    def column(self, name: str) -> Floats:
        """A column of its requests."""
        return np.array([float(row[name]) for row in self._rows])

    @cached_property
    def _rows(self) -> list[dict[str, str]]:
        with (DATA / f"{self.name}_requests.csv").open(encoding="utf-8") as file:
            return list(csv.DictReader(file))

    @property
    def watched(self) -> list[dict[str, float]]:
        """The engine's state, once a second."""
        with (DATA / f"{self.name}_timeseries.csv").open(encoding="utf-8") as file:
            return [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]

    def requests(self) -> list[Request]:
        """What was asked, as it arrived, with the blocks of its prompts."""
        planned = load_trace(DATA / f"{self.name}_blocks.jsonl.gz").requests(0)
        arrivals = self.column("arrival_s").tolist()
        return [each._replace(arrival_s=at_s) for each, at_s in zip(planned, arrivals, strict=True)]


RUNS = (
    VllmRun("rtx4090_llama31_8b_tp1", "llama-3.1-8b", "rtx-4090"),
    VllmRun("rtxpro6000_qwen3_32b_tp2", "qwen3-32b", "rtx-pro-6000-server"),
)
