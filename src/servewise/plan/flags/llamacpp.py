"""The plan as ``llama-server``; options as of llama.cpp in llama-cpp-python 0.3.36."""

from __future__ import annotations

from collections.abc import Iterator

from servewise.batching.policies import LlamaCpp
from servewise.plan.flags.common import notes_for
from servewise.plan.flags.wanted import EngineLaunch, Wanted

LEAST_SLOT_TOKENS = 1024
MICRO_BATCH = 512
MOST_SLOTS = 256  # LLAMA_MAX_SEQ, llama.cpp src/llama-cparams.h
KV = {"int8": "q8_0", "fp8": "q8_0", "int4": "q4_0"}
FILES = {
    "bf16": "BF16",
    "fp16": "F16",
    "int8": "Q8_0",
    "fp8": "Q8_0",
    "int6": "Q6_K",
    "int5": "Q5_K_M",
    "int4": "Q4_K_M",
}


def llamacpp(wanted: Wanted) -> EngineLaunch:
    """The command line."""
    notes: list[str] = list(notes_for(wanted, "llamacpp"))
    argv = (
        "llama-server",
        *_model(wanted, notes),
        *_limits(wanted, notes),
        *_formats(wanted, notes),
        *_split(wanted, notes),
    )
    return EngineLaunch(engine="llamacpp", argv=argv, notes=tuple(notes))


def _model(wanted: Wanted, notes: list[str]) -> Iterator[str]:
    if wanted.model.lower().endswith(".gguf"):
        yield from ("--model", wanted.model)
        return
    stored = wanted.candidate.deployment.stored_weights
    name = wanted.model.rstrip("/").rsplit("/", 1)[-1]
    file = f"{name}-{FILES.get(stored.name, stored.name.upper())}.gguf"
    notes.append(f"llama.cpp reads GGUF: make {file} with convert_hf_to_gguf.py and llama-quantize, or name your own.")
    yield from ("--model", file)


def _limits(wanted: Wanted, notes: list[str]) -> Iterator[str]:
    """Slots of a context each; for a plan of a paged engine one cache that all slots share, as large as its pool."""
    slots, each = wanted.candidate.policy.slots, max(wanted.context_tokens, LEAST_SLOT_TOKENS)
    policy = wanted.candidate.policy
    shared = policy.kv_unified if isinstance(policy, LlamaCpp) else wanted.family != "llamacpp"
    pool = wanted.kv_tokens if shared else None
    if slots > MOST_SLOTS:
        notes.append(f"llama.cpp runs at most {MOST_SLOTS} sequences at once, the plan {slots}.")
    at_once = min(slots, MOST_SLOTS)
    cells = min(pool, at_once * each) if pool else at_once * each
    yield from ("--ctx-size", str(max(cells, each)), "--parallel", str(at_once))
    yield from ("--kv-unified",) if pool else ()
    if wanted.batched_tokens:
        micro = min(wanted.batched_tokens, MICRO_BATCH)
        yield from ("--batch-size", str(wanted.batched_tokens), "--ubatch-size", str(micro))


def _formats(wanted: Wanted, notes: list[str]) -> Iterator[str]:
    kv = wanted.candidate.deployment.kv
    yield from ("--flash-attn", "on")
    if kv.bits >= 16:
        return
    if kv.name in KV:
        yield from ("--cache-type-k", KV[kv.name], "--cache-type-v", KV[kv.name])
    else:
        notes.append(f"llama.cpp keeps no {kv} KV cache: it stays at f16.")


def _split(wanted: Wanted, notes: list[str]) -> Iterator[str]:
    split = wanted.candidate.deployment.parallelism
    yield from ("--n-gpu-layers", "all")
    if split.expert:
        placed = "" if split.redundant_experts is None else ", nor are there copies of experts"
        notes.append(f"llama.cpp spreads no whole experts over accelerators, as the plan does{placed}.")
    if split.tensor > 1:
        notes.append("llama.cpp's --split-mode tensor is experimental; layer (a pipeline) is its usual.")
        yield from ("--split-mode", "tensor")
    elif split.pipeline > 1:
        yield from ("--split-mode", "layer")
