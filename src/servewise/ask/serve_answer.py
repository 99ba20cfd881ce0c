"""What is told of a server that listens, as a document and at the terminal."""

from __future__ import annotations

import socket

import torch

from servewise.answer import Answer
from servewise.ask.serve_options import ServeOptions
from servewise.ask.serve_room import Room, block_bytes
from servewise.ask.serving import describe
from servewise.batching.policies import Continuous, Policy, Static
from servewise.caveats import Caveat
from servewise.conditions import Conditions
from servewise.engine.config import DecoderConfig
from servewise.engine.running.engine import Engine
from servewise.engine.server.asked import Served
from servewise.engine.server.listening import address_of, is_loopback
from servewise.units import format_bytes
from servewise.version import __version__


def answer_of(
    served: Served,
    engine: Engine,
    room: Room,
    options: ServeOptions,
    *,
    stored: str,
    kernels: str,
    listener: socket.socket,
    keys: tuple[str, ...],
) -> Answer:
    """Where a server listens, on what, and with what limits."""
    pool, config, policy = engine.pool, engine.model.config, room.policy
    each = block_bytes(config, pool.block_tokens, room.dtype)
    return Answer(
        command="serve",
        conditions=Conditions(
            hardware=f"1 x {room.machine}",
            load=f"up to {policy.slots} sequences at once",
            lengths=f"up to {served.context_tokens} tokens, prompt and reply",
            precision=f"{options.dtype}; weights stored as {stored}",
            model=config.name,
            engine=f"servewise engine by {kernels}; PyTorch {torch.__version__}",
            policy=describe(policy),
            version=__version__,
        ),
        result={
            "url": address_of(listener),
            "model": served.name,
            "kv_blocks": pool.blocks,
            "kv_block_tokens": pool.block_tokens,
            "kv_tokens": pool.capacity_tokens,
            "kv_bytes": pool.blocks * each,
            "max_context_tokens": served.context_tokens,
            "max_sequences": policy.slots,
            "max_batched_tokens": policy.max_batched_tokens if isinstance(policy, Continuous) else None,
            "api_key": bool(keys),
            "max_queued": options.queued,
            "kernels": kernels,
        },
        caveats=_caveats(served, config, policy, options, listener, keys),
    )


def _caveats(
    served: Served,
    config: DecoderConfig,
    policy: Policy,
    options: ServeOptions,
    listener: socket.socket,
    keys: tuple[str, ...],
) -> tuple[Caveat, ...]:
    found = []
    if isinstance(policy, Static):
        message = f"static batching: nothing runs before {policy.batch} requests wait"
        found.append(Caveat("waits-for-a-full-batch", message, "--policy dynamic starts after a window"))
    if served.context_tokens < config.max_context_tokens and options.context_tokens is None:
        message = (
            f"the KV pool holds {served.context_tokens} of the model's {config.max_context_tokens} tokens of context"
        )
        found.append(Caveat("pool-below-context", message, "--blocks or --kv-memory"))
    if not is_loopback(listener) and not keys:
        message = "OPEN TO THE NETWORK: other machines can reach this server, and no API key is asked for"
        found.append(Caveat("open-to-the-network", message, "--api-key-file, or --host 127.0.0.1"))
    return tuple(found)


def lines(answer: Answer) -> list[str]:
    """What a terminal shows at the start."""
    result = answer.result
    tokens_a_step = result["max_batched_tokens"]
    limits = [f"{result['max_sequences']} sequences at once", f"{result['max_context_tokens']} tokens of context"]
    limits += [f"{tokens_a_step} tokens a step"] if tokens_a_step else []
    limits += [f"{result['max_queued']} may wait"]
    pool = f"{result['kv_blocks']} blocks of {result['kv_block_tokens']} = {result['kv_tokens']} tokens"
    said = [
        f"servewise: {result['model']} at {result['url']}/v1",
        f"  on       {answer.conditions.hardware}, {answer.conditions.precision}",
        f"  kernels  {result['kernels']}",
        f"  policy   {answer.conditions.policy}",
        f"  KV pool  {pool}, {format_bytes(result['kv_bytes'])}",
        f"  limits   {', '.join(limits)}",
    ]
    said += [f"  note     {each.message}; {each.cure}" for each in answer.caveats]
    return [*said, "  Ctrl-C stops it: running requests end first, a second one does not wait"]
