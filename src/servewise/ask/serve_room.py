"""The room that a server has: its policy, its machine, the longest context, and the blocks of its KV pool."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from servewise.ask.numbers import positive, whole
from servewise.ask.serve_options import SLOTS, ServeOptions
from servewise.ask.serving import BATCH, POLICIES
from servewise.batching.policies import Continuous, Dynamic, Policy, Static
from servewise.engine.config import DecoderConfig
from servewise.errors import InputError, UnknownName
from servewise.probe.ops.machine import Machine, this_machine
from servewise.probe.ops.operation import dtype_named

MEMORY_SHARE = 0.25  # of the machine's, for KV, where it is not said


@dataclass(frozen=True, slots=True)
class Room:
    """``blocks`` of KV hold up to ``context_tokens``, prompt and reply, of what ``policy`` runs on ``machine``."""

    policy: Policy
    machine: Machine
    dtype: torch.dtype
    context_tokens: int
    blocks: int

    @classmethod
    def of(cls, options: ServeOptions, config: DecoderConfig) -> Room:
        """As asked for, for the model of ``config``."""
        policy = _policy(options)
        machine, dtype = this_machine(options.device, options.threads), dtype_named(options.dtype)
        context = _context(config, options.context_tokens)
        blocks = _blocks(options, config, machine, context, policy.slots, dtype)
        return cls(policy, machine, dtype, min(context, blocks * options.block_tokens), blocks)


def _policy(options: ServeOptions) -> Policy:
    if options.slots is not None:
        whole(options.slots, "slots", most=65_536)
    window_s = positive(options.window_s, "window", most=3600)
    if options.policy == "static":
        return Static(options.slots or BATCH)
    if options.policy == "dynamic":
        return Dynamic(options.slots or BATCH, window_s)
    if options.policy != "continuous":
        raise UnknownName("policy", options.policy, POLICIES, where="policy", hint=f"one of {', '.join(POLICIES)}")
    slots = options.slots or SLOTS
    return Continuous(
        max_sequences=slots,
        max_batched_tokens=whole(options.max_batched_tokens, "max batched tokens"),
        chunked_prefill=options.chunked,
        reserve_output=options.reserve,
        prefix_cache=options.prefix_cache,
    )


def _context(config: DecoderConfig, asked: int | None) -> int:
    if asked is None:
        return config.max_context_tokens
    if whole(asked, "max context", least=2) > config.max_context_tokens:
        what = f"the model's context is {config.max_context_tokens} tokens, not {asked}"
        raise InputError(what, where="max context", hint="ask for less")
    return asked


def block_bytes(config: DecoderConfig, block_tokens: int, dtype: torch.dtype) -> int:
    """Bytes of one KV block: keys and values of all layers [bytes]."""
    return 2 * config.layers * config.kv_heads * config.head_dim * block_tokens * dtype.itemsize


def _blocks(
    options: ServeOptions, config: DecoderConfig, machine: Machine, context: int, slots: int, dtype: torch.dtype
) -> int:
    """The pool's blocks."""
    if options.blocks is not None and options.kv_memory_bytes is not None:
        raise InputError("blocks and memory are both given", where="KV pool", hint="give one")
    each = block_bytes(config, whole(options.block_tokens, "block tokens", most=65_536), dtype)
    if options.blocks is not None:
        return whole(options.blocks, "blocks")
    if options.kv_memory_bytes is not None:
        blocks = int(positive(options.kv_memory_bytes, "KV memory") // each)
        if blocks < 1:
            raise InputError(f"a block takes {each} bytes", where="KV memory", hint="give more")
        return blocks
    useful = slots * math.ceil(context / options.block_tokens)
    return max(1, min(useful, int(machine.memory_bytes * MEMORY_SHARE // each)))
