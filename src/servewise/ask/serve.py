"""The reference engine on a local model, made ready to be served under the OpenAI API."""

from __future__ import annotations

import gc
import math
import resource
import socket
from dataclasses import dataclass
from pathlib import Path

import torch

from servewise.answer import Answer
from servewise.ask.numbers import positive, whole
from servewise.ask.serving import BATCH, POLICIES, WINDOW_S, describe
from servewise.batching.policies import Continuous, Dynamic, Policy, Static
from servewise.caveats import Caveat
from servewise.conditions import Conditions
from servewise.engine.checkpoint import Tokenizer, load_checkpoint
from servewise.engine.checkpoints.chat import ChatTemplate
from servewise.engine.checkpoints.rendering import ConfinedTemplate
from servewise.engine.checkpoints.tokenizer import TextTokenizer
from servewise.engine.compiled.load import load_model
from servewise.engine.config import DecoderConfig
from servewise.engine.running.engine import Engine
from servewise.engine.server.app import Api
from servewise.engine.server.asked import Served
from servewise.engine.server.driver import Driver
from servewise.engine.server.keys import checked_key, keys_in
from servewise.engine.server.limits import BODIES_BYTES, Limits, RequestLimits, body_bytes_for
from servewise.engine.server.listening import HttpServer, address_of, bound, is_loopback
from servewise.engine.server.meters import Meters
from servewise.errors import InputError, UnknownName
from servewise.probe.ops.machine import Machine, this_machine
from servewise.probe.ops.operation import dtype_named
from servewise.units import format_bytes
from servewise.version import __version__

SLOTS = 32  # of continuous batching; on a CPU more rows only share out the same arithmetic
BATCHED_TOKENS = 512
BLOCK_TOKENS = 16
MEMORY_SHARE = 0.25  # of the machine's, for KV, where it is not said
SPARE_FILES = 64  # file descriptors for other things than connections
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions:
    """How a model is served. ``slots`` None: 32 for continuous, 8 for the others.

    ``blocks`` or ``kv_memory_bytes`` size the pool (neither: what all slots could fill, at most a quarter of the
    memory); ``context_tokens`` is the longest prompt and reply together, the model's own or less. ``host`` other than
    loopback is seen from other machines: then it takes a ``key``, a ``key_file`` (one key a line), or ``no_key``, which
    says that something else keeps strangers out. ``grace_s``: what requests have to end after a signal. ``queued``
    choices may wait beyond ``slots``, then the answer is 429. The others are limits of a request (None: the context's)
    and of the connections (``engine.server.limits``); ``body_bytes`` None: what any prompt fits into. ``stuck_s``:
    a step that takes longer makes ``/health`` 503.
    ``kernels``: ``torch``, ``compiled`` (bfloat16 on x86-64, built at first use), or ``auto``, these where they can be.
    """

    policy: str = "continuous"
    slots: int | None = None
    max_batched_tokens: int = BATCHED_TOKENS
    window_s: float = WINDOW_S
    chunked: bool = True
    reserve: bool = False
    prefix_cache: bool = True
    blocks: int | None = None
    kv_memory_bytes: float | None = None
    block_tokens: int = BLOCK_TOKENS
    context_tokens: int | None = None
    dtype: str = "bfloat16"
    device: str = "cpu"
    kernels: str = "auto"
    threads: int | None = None
    host: str = "127.0.0.1"
    port: int = 8000
    name: str | None = None
    key: str | None = None
    key_file: str | None = None
    no_key: bool = False
    trust_remote_code: bool = False
    seed: int = 0
    grace_s: int = 30
    queued: int = 256
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    choices: int = 256
    connections: int = 1000
    body_bytes: float | None = None
    body_s: float = 60.0
    head_s: float = 10.0
    stalled_s: float = 30.0
    unread_tokens: int = 4096
    stuck_s: float = 600.0


@dataclass(frozen=True, slots=True)
class Service:
    """A server that listens already; ``answer`` says where, and with what limits. ``run`` serves until a signal."""

    server: HttpServer
    engine: Engine
    answer: Answer
    template: ConfinedTemplate | None = None

    def run(self) -> None:
        """Serve until SIGTERM, Ctrl-C, or ``server.should_exit``."""
        if self.template is not None:
            self.template.start()
        # A full collection comes when a quarter of the old objects is new. With a model's own ones set aside (as vLLM
        # and SGLang do) what connections leave behind is collected after thousands of them, not millions.
        gc.collect()
        gc.freeze()
        try:
            self.server.serve_until_stopped()
        finally:
            gc.unfreeze()
            if self.template is not None:
                self.template.close()


def service(model: str, options: ServeOptions) -> Service:
    """MODEL, a local checkpoint, loaded and listening.

    Raises InputError for a model that is not here, a setting that makes no sense, a pool that holds no request, or an
    address that cannot be had.
    """
    if options.trust_remote_code:
        hint = "leave --trust-remote-code out; models of known architectures need none"
        raise InputError("code of a checkpoint is never run here", where="trust remote code", hint=hint)
    keys = _keys(options)
    checkpoint = load_checkpoint(model)
    config = checkpoint.config
    policy = _policy(options)
    machine, dtype = this_machine(options.device, options.threads), dtype_named(options.dtype)
    context = _context(config, options.context_tokens)
    blocks = _blocks(options, config, machine, context, policy.slots, dtype)
    served = Served(
        options.name or config.name,
        min(context, blocks * options.block_tokens),
        config.vocabulary,
        tokenizer := checkpoint.tokenizer(),
        __version__,
        _request_limits(options, policy.slots),
        tokenizer.longest_token if isinstance(tokenizer, TextTokenizer) else None,
    )
    limits, template = _limits(options, served.context_tokens), _confined(tokenizer)
    grace_s = whole(options.grace_s, "grace", least=0, most=86_400)
    listener = bound(options.host, whole(options.port, "port", least=0, most=65_535))
    try:
        _check_open(listener, options, keys)
        loaded = load_model(checkpoint, dtype=dtype, device=options.device, kernels=options.kernels)
        engine = Engine(
            loaded.model,
            policy,
            blocks=blocks,
            block_tokens=options.block_tokens,
            tokenizer=served.tokenizer,
            seed=options.seed,
        )
    except BaseException:
        listener.close()
        raise
    meters = Meters(
        served.name,
        prefix_cache=engine.pool.hash_block_tokens is not None,
        blocks=blocks,
        block_tokens=options.block_tokens,
    )
    driver = Driver(engine, meters, unread_tokens=limits.unread_tokens, stuck_s=options.stuck_s)
    hosts = LOOPBACK_NAMES | {options.host.lower()} if is_loopback(listener) and not keys else None
    api = Api(driver, served, meters, keys, places=policy.slots + limits.queued, limits=limits, hosts=hosts)
    answer = _answer(served, engine, policy, options, machine, checkpoint.stored, loaded.kernels, listener, keys)
    return Service(HttpServer(api, listener, grace_s=grace_s), engine, answer, template)


def _keys(options: ServeOptions) -> tuple[str, ...]:
    """The keys that clients may bring."""
    if options.key is not None and options.key_file is not None:
        raise InputError("is given twice, by itself and as a file", where="API key", hint="give one")
    if options.key is not None:
        return (checked_key(options.key, "API key"),)
    return keys_in(Path(options.key_file)) if options.key_file is not None else ()


def _check_open(listener: socket.socket, options: ServeOptions, keys: tuple[str, ...]) -> None:
    """Refuse an address that other machines can reach, without a key, unless it is meant so."""
    if not (is_loopback(listener) or keys or options.no_key):
        hint = "--api-key-file FILE or SERVEWISE_API_KEY; --no-api-key if something else keeps strangers out"
        raise InputError("other machines can reach it, and no API key is asked for", where=options.host, hint=hint)


def _request_limits(options: ServeOptions, slots: int) -> RequestLimits:
    """The limits of a request; it cannot have more choices than the server holds at once."""
    places = slots + whole(options.queued, "max queued", least=0)
    for value, what in ((options.prompt_tokens, "max prompt tokens"), (options.output_tokens, "max output tokens")):
        if value is not None:
            whole(value, what)
    return RequestLimits(
        prompt_tokens=options.prompt_tokens,
        output_tokens=options.output_tokens,
        choices=min(whole(options.choices, "max choices", most=65_536), places),
    )


def _limits(options: ServeOptions, context_tokens: int) -> Limits:
    """The server's limits; no more connections than this process may open files."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0] - SPARE_FILES
    body = int(options.body_bytes) if options.body_bytes is not None else body_bytes_for(context_tokens)
    return Limits(
        queued=options.queued,
        connections=max(1, min(whole(options.connections, "max connections"), files)),
        body_bytes=body,
        bodies_bytes=max(BODIES_BYTES, 4 * body),
        body_s=positive(options.body_s, "body timeout", most=86_400),
        head_s=positive(options.head_s, "head timeout", most=86_400),
        stalled_s=positive(options.stalled_s, "stall timeout", most=86_400),
        unread_tokens=whole(options.unread_tokens, "unread tokens"),
    )


def _confined(tokenizer: Tokenizer) -> ConfinedTemplate | None:
    """The tokenizer's template, rendered in a process of its own from now on."""
    if not isinstance(tokenizer, TextTokenizer) or not isinstance(tokenizer.template, ChatTemplate):
        return None
    tokenizer.template = confined = ConfinedTemplate(tokenizer.template)
    return confined


def _policy(options: ServeOptions) -> Policy:
    if options.slots is not None:
        whole(options.slots, "slots", most=65_536)
    if options.policy == "static":
        return Static(options.slots or BATCH)
    if options.policy == "dynamic":
        return Dynamic(options.slots or BATCH, positive(options.window_s, "window", most=3600))
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


def _answer(
    served: Served,
    engine: Engine,
    policy: Policy,
    options: ServeOptions,
    machine: Machine,
    stored: str,
    kernels: str,
    listener: socket.socket,
    keys: tuple[str, ...],
) -> Answer:
    pool, config = engine.pool, engine.model.config
    each = block_bytes(config, pool.block_tokens, dtype_named(options.dtype))
    return Answer(
        command="serve",
        conditions=Conditions(
            hardware=f"1 x {machine}",
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
