"""The plan as ``sglang.launch_server``; options as of SGLang 0.5.23."""

from __future__ import annotations

from collections.abc import Iterator

from servewise.batching.policies import Continuous, Sglang
from servewise.plan.flags.common import notes_for, online_quantisation
from servewise.plan.flags.wanted import EngineLaunch, Wanted

ONLINE = {"fp8": "fp8"}
KV = {"fp8": "fp8_e4m3", "mxfp8": "mxfp8", "nvfp4": "nvfp4"}


def sglang(wanted: Wanted) -> EngineLaunch:
    """The command line."""
    notes: list[str] = list(notes_for(wanted, "sglang"))
    head = ("python3", "-m", "sglang.launch_server", "--model-path", wanted.model)
    argv = (*head, *_split(wanted), *_formats(wanted, notes), *_limits(wanted, notes))
    return EngineLaunch(engine="sglang", argv=argv, notes=tuple(note for note in notes if note))


def _split(wanted: Wanted) -> Iterator[str]:
    split = wanted.candidate.deployment.parallelism
    for name, degree in (("--tp-size", split.tensor), ("--pp-size", split.pipeline), ("--dp-size", split.data)):
        if degree > 1:
            yield from (name, str(degree))
    if split.expert:
        yield from ("--ep-size", str(split.expert_ranks))
    if split.redundant_experts is not None:
        yield from ("--enable-eplb", "--ep-num-redundant-experts", str(split.redundant_experts))
    if split.decode_context > 1:
        yield from ("--dcp-size", str(split.decode_context))


def _formats(wanted: Wanted, notes: list[str]) -> Iterator[str]:
    yield from ("--dtype", wanted.half)
    method, note = online_quantisation(wanted, "sglang", ONLINE)
    notes.append(note)
    if method:
        yield from ("--quantization", method)
    kv = wanted.candidate.deployment.kv
    if kv.bits < 16 and kv.name in KV:
        yield from ("--kv-cache-dtype", KV[kv.name])
    elif kv.bits < 16:
        notes.append(f"SGLang keeps no {kv} KV cache: it stays at {wanted.half}.")


def _limits(wanted: Wanted, notes: list[str]) -> Iterator[str]:
    policy = wanted.candidate.policy
    yield from ("--context-length", str(wanted.context_tokens), "--max-running-requests", str(policy.slots))
    if wanted.batched_tokens:
        yield from ("--chunked-prefill-size", str(wanted.batched_tokens))
        if not isinstance(policy, Sglang):
            notes.append("--chunked-prefill-size limits prompt tokens a step; decoding sequences come on top.")
    if isinstance(policy, Continuous) and policy.order == "priority":
        yield from ("--schedule-policy", "priority")
    if wanted.family == "sglang":
        yield from ("--mem-fraction-static", f"{wanted.utilization:g}")
    else:
        notes.append("--mem-fraction-static is left to SGLang, which finds it by the device and the split.")
