"""What a launch asks for, in one vocabulary for all engines; None where it does not say."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from servewise.check.engines.launch import Given, Launch

NAMES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "vllm": {
        "tensor": ("--tensor-parallel-size",),
        "pipeline": ("--pipeline-parallel-size",),
        "data": ("--data-parallel-size",),
        "context": ("--max-model-len",),
        "sequences": ("--max-num-seqs",),
        "batched": ("--max-num-batched-tokens",),
        "utilization": ("--gpu-memory-utilization",),
        "kv": ("--kv-cache-dtype",),
        "quantization": ("--quantization",),
        "dtype": ("--dtype",),
        "host": ("--host",),
        "key": ("--api-key",),
        "eager": ("--enforce-eager",),
        "prefix_off": ("--no-enable-prefix-caching",),
        "prefix_on": ("--enable-prefix-caching",),
        "chunks_off": ("--no-enable-chunked-prefill",),
        "offload": ("--cpu-offload-gb",),
        "nodes": ("--nnodes",),
    },
    "sglang": {
        "tensor": ("--tp-size",),
        "pipeline": ("--pp-size",),
        "data": ("--dp-size",),
        "context": ("--context-length",),
        "sequences": ("--max-running-requests",),
        "batched": ("--chunked-prefill-size",),
        "utilization": ("--mem-fraction-static",),
        "kv": ("--kv-cache-dtype",),
        "quantization": ("--quantization",),
        "dtype": ("--dtype",),
        "host": ("--host",),
        "key": ("--api-key",),
        "eager": ("--disable-cuda-graph",),
        "prefix_off": ("--disable-radix-cache",),
        "offload": ("--cpu-offload-gb",),
        "nodes": ("--nnodes",),
    },
    "trtllm": {
        "tensor": ("--tensor-parallel-size",),
        "pipeline": ("--pipeline-parallel-size",),
        "context": ("--max-seq-len",),
        "sequences": ("--max-batch-size",),
        "batched": ("--max-num-tokens",),
        "utilization": ("--free-gpu-memory-fraction",),
        "kv": ("--kv-cache-dtype",),
        "quantization": ("--quantization",),
        "host": ("--host",),
        "prefix_off": ("--disable-kv-cache-reuse",),
    },
    "llamacpp": {
        "context": ("--ctx-size",),
        "sequences": ("--parallel",),
        "batched": ("--batch-size",),
        "kv": ("--cache-type-k",),
        "kv_values": ("--cache-type-v",),
        "host": ("--host",),
        "key": ("--api-key", "--api-key-file"),
        "prefix_off": ("--no-cache-prompt",),
        "static": ("--no-cont-batching",),
    },
}
UNITS = {"k": 1_000, "m": 1_000_000, "g": 1_000_000_000}
BINARY = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@dataclass(frozen=True, slots=True)
class Speculation:
    """``method`` and ``draft_tokens`` where stated; ``lossy``: drafts are accepted beyond the rejection rule."""

    given: Given
    method: str
    draft_tokens: int | None = None
    lossy: bool = False


@dataclass(frozen=True, slots=True)
class Settings:
    """The launch's settings by their common names."""

    launch: Launch

    def given(self, setting: str) -> Given | None:
        """The option that states ``setting``."""
        return self.launch.option(*NAMES[self.launch.engine].get(setting, ()))

    def whole(self, setting: str) -> int | None:
        """Its whole number; vLLM's ``32k`` is 32,000 and ``32K`` 32,768."""
        option = self.given(setting)
        return None if option is None else whole_of(option.value)

    def number(self, setting: str) -> float | None:
        """Its number."""
        option = self.given(setting)
        return None if option is None else number_of(option.value)

    def words(self, setting: str) -> str:
        """Its text in lower case, empty where it is not stated."""
        option = self.given(setting)
        return str(option.value).lower() if option is not None and option.value is not None else ""

    @property
    def tensor(self) -> int:
        """Tensor-parallel degree."""
        return self.whole("tensor") or 1

    @property
    def pipeline(self) -> int:
        """Pipeline stages."""
        return self.whole("pipeline") or 1

    @property
    def at_once(self) -> int | None:
        """Sequences of a replica at most. TensorRT-LLM's limit is that of one of the batches in flight, as many as
        stages (1.0, ``_util.py``: ``max_num_sequences = max_batch_size * mapping.pp_size``)."""
        stated = self.whole("sequences")
        return stated * self.pipeline if stated and self.launch.engine == "trtllm" else stated

    @property
    def data(self) -> int:
        """Data-parallel replicas."""
        return self.whole("data") or 1

    @property
    def prefix_off(self) -> Given | None:
        """The option that switches prefix caching off."""
        option = self.given("prefix_off")
        reuse = self.launch.option("--enable-block-reuse")
        return option or (reuse if reuse is not None and reuse.value is False else None)

    @property
    def speculation(self) -> Speculation | None:
        """How it speculates."""
        found = {"vllm": _vllm, "sglang": _sglang, "trtllm": _trtllm, "llamacpp": _llamacpp}[self.launch.engine]
        return found(self.launch)


def whole_of(value: Any) -> int | None:
    """A whole number as engines take it.

    >>> whole_of("32k"), whole_of("32K"), whole_of("$N"), whole_of(" 8192 ")
    (32000, 32768, None, 8192)
    """
    if isinstance(value, bool) or value is None:
        return None
    text = str(value).strip()
    factor = (UNITS | BINARY).get(text[-1:], 1)
    try:
        found = float(text[:-1] if factor > 1 else text) * factor
        return int(found) if abs(found) < 1e15 else None
    except (ValueError, OverflowError):
        return None


def number_of(value: Any) -> float | None:
    """A number, None for what is none (a variable, infinity)."""
    try:
        found = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return found if abs(found) < 1e15 else None


def table_of(value: Any) -> Mapping[str, Any]:
    """A JSON object given as text or as a mapping; empty where it is neither."""
    if isinstance(value, Mapping):
        return value
    try:
        found = json.loads(value) if isinstance(value, str) else None
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, Mapping) else {}


def _vllm(launch: Launch) -> Speculation | None:
    option = launch.option("--speculative-config")
    if option is None:
        short = launch.option("--spec-method", "--spec-model") or _dotted(launch)
        tokens = launch.option("--spec-tokens")
        return (
            None if short is None else Speculation(short, str(short.value), whole_of(tokens.value) if tokens else None)
        )
    table = table_of(option.value)
    method = str(table.get("method") or ("draft_model" if table.get("model") else ""))
    lossy = table.get("rejection_sample_method") == "synthetic"
    return Speculation(option, method, whole_of(table.get("num_speculative_tokens")), lossy)


def _dotted(launch: Launch) -> Given | None:
    return next((each for each in launch.given if each.name.startswith("--speculative-config.")), None)


def _sglang(launch: Launch) -> Speculation | None:
    option = launch.option("--speculative-algorithm")
    if option is None:
        return None
    tokens, steps = launch.option("--speculative-num-draft-tokens"), launch.option("--speculative-num-steps")
    thresholds = ("--speculative-accept-threshold-single", "--speculative-accept-threshold-acc")
    given = [launch.option(name) for name in thresholds]
    lossy = any(each is not None and (number_of(each.value) or 1.0) < 1 for each in given)
    longest = whole_of(steps.value) if steps else whole_of(tokens.value) if tokens else None
    return Speculation(option, str(option.value).lower(), longest, lossy)


def _trtllm(launch: Launch) -> Speculation | None:
    option = launch.option("--speculative-config")
    if option is None:
        return None
    table = table_of(option.value)
    tokens = table.get("max_draft_len") or table.get("num_nextn_predict_layers")
    return Speculation(option, str(table.get("decoding_type", "")).lower(), whole_of(tokens))


def _llamacpp(launch: Launch) -> Speculation | None:
    option = launch.option("--spec-draft-model", "--spec-type")
    if option is None:
        return None
    tokens = launch.option("--spec-draft-n-max", "--draft")
    return Speculation(option, str(option.value).lower(), whole_of(tokens.value) if tokens else None)
