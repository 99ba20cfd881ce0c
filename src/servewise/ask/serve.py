"""The reference engine on a local model, made ready to be served under the OpenAI API."""

from __future__ import annotations

import gc
import socket
from dataclasses import dataclass

from servewise.answer import Answer
from servewise.ask.numbers import positive, whole
from servewise.ask.serve_answer import answer_of, lines
from servewise.ask.serve_door import check_open, keys_of, names_of
from servewise.ask.serve_limits import limits_of, request_limits_of
from servewise.ask.serve_options import ServeOptions
from servewise.ask.serve_room import Room, block_bytes
from servewise.engine.checkpoint import Checkpoint, Tokenizer, load_checkpoint
from servewise.engine.checkpoints.chat import ChatTemplate
from servewise.engine.checkpoints.rendering import ConfinedTemplate
from servewise.engine.checkpoints.tokenizer import TextTokenizer
from servewise.engine.compiled.load import load_model
from servewise.engine.running.engine import Engine
from servewise.engine.server.app import Api
from servewise.engine.server.asked import Served
from servewise.engine.server.driver import Driver
from servewise.engine.server.limits import Limits
from servewise.engine.server.listening import HttpServer, bound
from servewise.engine.server.meters import Meters
from servewise.errors import InputError
from servewise.version import __version__

__all__ = ["ServeOptions", "Service", "block_bytes", "lines", "service"]

MOST_SEED = 2**63 - 1


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
    keys = keys_of(options)
    checkpoint = load_checkpoint(model)
    room = Room.of(options, checkpoint.config)
    served = _served(checkpoint, room, options)
    limits, template = limits_of(options, served.context_tokens), _confined(served.tokenizer)
    grace_s = whole(options.grace_s, "grace", least=0, most=86_400)
    whole(options.seed, "seed", least=0, most=MOST_SEED)
    positive(options.stuck_s, "stuck after")
    listener = bound(options.host, whole(options.port, "port", least=0, most=65_535))
    try:
        check_open(listener, options, keys)
        engine, kernels = _engine(checkpoint, served, room, options)
    except BaseException:
        listener.close()
        raise
    api = _api(engine, served, room, options, limits, listener, keys)
    answer = answer_of(
        served, engine, room, options, stored=checkpoint.stored, kernels=kernels, listener=listener, keys=keys
    )
    return Service(HttpServer(api, listener, grace_s=grace_s), engine, answer, template)


def _served(checkpoint: Checkpoint, room: Room, options: ServeOptions) -> Served:
    """The model as clients see it."""
    config, tokenizer = checkpoint.config, checkpoint.tokenizer()
    return Served(
        options.name or config.name,
        room.context_tokens,
        config.vocabulary,
        tokenizer,
        __version__,
        request_limits_of(options, room.policy.slots),
        tokenizer.longest_token if isinstance(tokenizer, TextTokenizer) else None,
    )


def _engine(checkpoint: Checkpoint, served: Served, room: Room, options: ServeOptions) -> tuple[Engine, str]:
    """The model loaded into an engine, and whose kernels it has."""
    loaded = load_model(checkpoint, dtype=room.dtype, device=options.device, kernels=options.kernels)
    engine = Engine(
        loaded.model,
        room.policy,
        blocks=room.blocks,
        block_tokens=options.block_tokens,
        tokenizer=served.tokenizer,
        seed=options.seed,
    )
    return engine, loaded.kernels


def _api(
    engine: Engine,
    served: Served,
    room: Room,
    options: ServeOptions,
    limits: Limits,
    listener: socket.socket,
    keys: tuple[str, ...],
) -> Api:
    """The API of ``engine``, its meters running."""
    meters = Meters(
        served.name,
        prefix_cache=engine.pool.hash_block_tokens is not None,
        blocks=room.blocks,
        block_tokens=options.block_tokens,
    )
    driver = Driver(engine, meters, unread_tokens=limits.unread_tokens, stuck_s=options.stuck_s)
    places, hosts = room.policy.slots + limits.queued, names_of(listener, options, keys)
    return Api(driver, served, meters, keys, places=places, limits=limits, hosts=hosts)


def _confined(tokenizer: Tokenizer) -> ConfinedTemplate | None:
    """The tokenizer's template, rendered in a process of its own from now on."""
    if not isinstance(tokenizer, TextTokenizer) or not isinstance(tokenizer.template, ChatTemplate):
        return None
    tokenizer.template = confined = ConfinedTemplate(tokenizer.template)
    return confined
