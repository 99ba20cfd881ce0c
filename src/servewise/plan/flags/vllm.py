"""The plan as ``vllm serve``; options as of vLLM 0.32."""

from __future__ import annotations

from collections.abc import Iterator

from servewise.batching.policies import Continuous, Vllm
from servewise.plan.flags.common import notes_for, online_quantisation
from servewise.plan.flags.wanted import EngineLaunch, Wanted

VERSION = "0.32.0"
ONLINE = {"fp8": "fp8"}
KV = {"fp8": "fp8", "int8": "int8_per_token_head", "int4": "int4_per_token_head", "nvfp4": "nvfp4"}


def vllm(wanted: Wanted) -> EngineLaunch:
    """The command line; in Kubernetes the same words are the container's."""
    notes: list[str] = list(notes_for(wanted, "vllm"))
    argv = ("vllm", "serve", wanted.model, *_split(wanted), *_formats(wanted, notes), *_limits(wanted, notes))
    return EngineLaunch(engine="vllm", argv=argv, notes=tuple(note for note in notes if note))


def _split(wanted: Wanted) -> Iterator[str]:
    split = wanted.candidate.deployment.parallelism
    for name, degree in (
        ("--tensor-parallel-size", split.tensor),
        ("--pipeline-parallel-size", split.pipeline),
        ("--data-parallel-size", split.data),
        ("--decode-context-parallel-size", split.decode_context),
    ):
        if degree > 1:
            yield from (name, str(degree))
    if split.expert:
        yield "--enable-expert-parallel"
    if split.redundant_experts is not None:
        yield from ("--enable-eplb", "--eplb-config", f'{{"num_redundant_experts": {split.redundant_experts}}}')


def _formats(wanted: Wanted, notes: list[str]) -> Iterator[str]:
    yield from ("--dtype", wanted.half)
    method, note = online_quantisation(wanted, "vllm", ONLINE)
    notes.append(note)
    if method:
        yield from ("--quantization", method)
    kv = wanted.candidate.deployment.kv
    if kv.bits < 16:
        if kv.name in KV:
            yield from ("--kv-cache-dtype", KV[kv.name])
            notes.append(f"The {kv} cache uses scales of 1.0 unless the checkpoint brings calibrated ones.")
        else:
            notes.append(f"vLLM keeps no {kv} KV cache: it stays at {wanted.half}.")


def _limits(wanted: Wanted, notes: list[str]) -> Iterator[str]:
    policy = wanted.candidate.policy
    yield from ("--max-model-len", str(wanted.context_tokens), "--max-num-seqs", str(policy.slots))
    if wanted.batched_tokens:
        yield from ("--max-num-batched-tokens", str(wanted.batched_tokens))
    if isinstance(policy, Continuous):
        if not policy.chunked_prefill:
            notes.append("The plan does not split prompts; chunked prefill is left on, which keeps gaps short.")
        yield from ("--enable-chunked-prefill",) if policy.chunked_prefill else ()
        yield from ("--enable-prefix-caching",) if policy.prefix_cache else ()
        yield from ("--scheduling-policy", "priority") if policy.order == "priority" else ()
        if policy.order not in ("fcfs", "priority"):
            notes.append(f"vLLM admits in order of arrival or priority: the plan's {policy.order} cannot be asked for.")
        if policy.watermark:
            yield from ("--watermark", f"{policy.watermark:g}")
        if policy.swap_blocks:
            notes.append("vLLM recomputes what it preempts: the plan's swap to the host cannot be asked for.")
    elif isinstance(policy, Vllm):
        yield from ("--enable-chunked-prefill",) if policy.enable_chunked_prefill else ()
        yield from ("--enable-prefix-caching",) if policy.enable_prefix_caching else ()
    if wanted.family == "vllm":
        yield from ("--gpu-memory-utilization", f"{wanted.utilization:g}")
