"""The plan as ``trtllm-serve`` with its YAML; options as of its commit 00209af."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from servewise.batching.policies import Continuous, Dynamic, Static, TrtLlm
from servewise.plan.flags.common import notes_for, online_quantisation
from servewise.plan.flags.wanted import EngineLaunch, Wanted
from servewise.plan.flags.yaml_text import Value, yaml_text
from servewise.plan.presets import cuts_prompts

CONFIG, BALANCER = "trtllm.yaml", "moe_load_balancer.yaml"
KV = {"fp8": "fp8", "nvfp4": "nvfp4"}


def trtllm(wanted: Wanted) -> EngineLaunch:
    """The command line and the file that it reads."""
    notes: list[str] = list(notes_for(wanted, "trtllm"))
    notes.append(online_quantisation(wanted, "TensorRT-LLM", {})[1])
    text = yaml_text(_config(wanted, notes))
    argv = ("trtllm-serve", wanted.model, *_split(wanted), *_limits(wanted), "--config", CONFIG)
    files = {CONFIG: text} | _balancer(wanted)
    return EngineLaunch(engine="trtllm", argv=argv, files=files, notes=tuple(note for note in notes if note))


def _split(wanted: Wanted) -> Iterator[str]:
    split = wanted.candidate.deployment.parallelism
    if split.tensor > 1:
        yield from ("--tp_size", str(split.tensor))
    if split.pipeline > 1:
        yield from ("--pp_size", str(split.pipeline))
    if split.expert:
        yield from ("--ep_size", str(split.tensor))


def _balancer(wanted: Wanted) -> dict[str, str]:
    """The online balancer's file: slots, and layers placed anew each step (examples/wide_ep/ep_load_balancer)."""
    deployment = wanted.candidate.deployment
    copies = deployment.parallelism.redundant_experts
    if copies is None:
        return {}
    experts = max(group.feed_forward.experts for group in deployment.model.layers)
    return {BALANCER: yaml_text({"num_slots": experts + copies, "layer_updates_per_iter": 2})}


def _limits(wanted: Wanted) -> Iterator[str]:
    yield from ("--max_batch_size", str(_batch(wanted)), "--max_seq_len", str(wanted.context_tokens))
    if wanted.batched_tokens:
        yield from ("--max_num_tokens", str(wanted.batched_tokens))


def _batch(wanted: Wanted) -> int:
    """Sequences of one of the micro-batches, of which there are as many as stages: max_batch_size is theirs, where the
    plan's slots are of the whole server (1.0: ``max_num_sequences = max_batch_size * mapping.pp_size``)."""
    policy, stages = wanted.candidate.policy, wanted.candidate.deployment.parallelism.pipeline
    if isinstance(policy, TrtLlm):
        return policy.max_batch_size
    return policy.slots if isinstance(policy, Static | Dynamic) else ceil(policy.slots / stages)


def _config(wanted: Wanted, notes: list[str]) -> dict[str, Value]:
    deployment, policy = wanted.candidate.deployment, wanted.candidate.policy
    share = wanted.utilization if wanted.family == "trtllm" else 0.9
    cache: dict[str, Value] = {"free_gpu_memory_fraction": share, "enable_block_reuse": True}
    if deployment.kv.bits < 16:
        if deployment.kv.name in KV:
            cache["dtype"] = KV[deployment.kv.name]
        else:
            notes.append(f"TensorRT-LLM keeps no {deployment.kv} KV cache: it stays at {wanted.half}.")
    config: dict[str, Value] = {"kv_cache_config": cache}
    if cuts_prompts(policy) or isinstance(policy, Static | Dynamic):
        config["enable_chunked_prefill"] = True
    config["cuda_graph_config"] = {"enable_padding": True, "max_batch_size": _batch(wanted)}
    if isinstance(policy, Continuous):
        kind = "GUARANTEED_NO_EVICT" if policy.reserve_output else "MAX_UTILIZATION"
        config["scheduler_config"] = {"capacity_scheduler_policy": kind}
    elif isinstance(policy, TrtLlm):
        config["scheduler_config"] = {"capacity_scheduler_policy": policy.capacity_scheduler_policy}
    if deployment.parallelism.redundant_experts is not None:
        config["moe_config"] = {"load_balancer": BALANCER}
    if deployment.parallelism.data > 1:
        config["enable_attention_dp"] = True
    return config
