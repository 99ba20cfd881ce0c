"""A server on a free loopback port, in a thread of the test, and the official client for it."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import openai

from servewise.batching.policies import Continuous
from servewise.engine.running.engine import Engine
from servewise.engine.server.app import Api
from servewise.engine.server.asked import Served
from servewise.engine.server.driver import Driver
from servewise.engine.server.limits import Limits
from servewise.engine.server.listening import HttpServer, address_of, bound
from servewise.engine.server.meters import Meters
from servewise.engine.step import Model

MODEL, KEY = "tiny", "sk-tiny"
BLOCKS, BLOCK = 96, 8
BOUND_S = 30.0  # no wait in these tests is longer


@dataclass(frozen=True)
class Running:
    """A server that runs: its engine, its address."""

    engine: Engine
    driver: Driver
    url: str
    server: HttpServer

    def client(self, key: str = KEY) -> openai.OpenAI:
        """The official client; no proxy stands between a test and its own machine."""
        http = openai.DefaultHttpxClient(trust_env=False)
        return openai.OpenAI(base_url=f"{self.url}/v1", api_key=key, max_retries=0, timeout=BOUND_S, http_client=http)

    def until_idle(self) -> None:
        """Wait until the engine holds no request."""
        wait_until(lambda: self.engine.idle)


def engine_of(model: Model, served: Served) -> Engine:
    """An engine with continuous batching and a prefix cache."""
    policy = Continuous(max_sequences=8, max_batched_tokens=64, prefix_cache=True)
    return Engine(model, policy, blocks=BLOCKS, block_tokens=BLOCK, tokenizer=served.tokenizer)


def wait_until(true: object) -> None:
    """Wait until ``true()``; fails after the bound."""
    assert callable(true)
    end = time.monotonic() + BOUND_S
    while not true():
        assert time.monotonic() < end, "it did not come about in time"
        time.sleep(0.005)


def api_of(
    engine: Engine,
    served: Served,
    keys: tuple[str, ...],
    limits: Limits,
    *,
    stuck_s: float = 600.0,
    hosts: frozenset[str] | None = None,
) -> Api:
    """The API over ``engine``."""
    meters = Meters(served.name, prefix_cache=engine.pool.hash_block_tokens is not None)
    driver = Driver(engine, meters, unread_tokens=limits.unread_tokens, stuck_s=stuck_s)
    return Api(driver, served, meters, keys, places=engine.slots + limits.queued, limits=limits, hosts=hosts)


@contextmanager
def serving(
    engine: Engine,
    served: Served,
    *,
    keys: tuple[str, ...] = (KEY,),
    grace_s: int = 5,
    limits: Limits | None = None,
    send_buffer_bytes: int | None = None,
    **how: Any,
) -> Iterator[Running]:
    """Serve for the time of the block; connections have the kernel's ``send_buffer_bytes``."""
    api = api_of(engine, served, keys, limits or Limits(), **how)
    driver = api.driver
    listener = bound("127.0.0.1", 0)
    if send_buffer_bytes is not None:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer_bytes)
    server = HttpServer(api, listener, grace_s=grace_s)
    thread = threading.Thread(target=server.serve_until_stopped, name="test-server")
    url = address_of(listener)
    thread.start()
    try:
        wait_until(lambda: server.started)
        yield Running(engine, driver, url, server)
    finally:
        server.should_exit = True
        thread.join(BOUND_S)
        assert not thread.is_alive()
