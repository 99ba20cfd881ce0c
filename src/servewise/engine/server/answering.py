"""A reply's events on their way out: one JSON document, or server-sent events; a client that leaves ends the work."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import AsyncIterator, Coroutine
from typing import Any, TypeVar

from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from servewise.engine.server.asked import Asked, Served
from servewise.engine.server.dialect import Dialect
from servewise.engine.server.driver import STOPPING, Accepted, Driver, Ended, Reply, Token
from servewise.engine.server.fault import Fault, fault_of
from servewise.engine.server.protocol import ABORT
from servewise.engine.server.token_text import token_text
from servewise.errors import InputError

T = TypeVar("T")


class Counter:
    """Tokens of a reply as they come. Prompts count once, whatever ``n``."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._cached: dict[int, int] = {}
        self._generated = 0

    def count(self, token: Token) -> None:
        """A token came."""
        self._generated += 1
        if token.index % self._asked.n == 0:
            self._cached.setdefault(token.index, token.cached_tokens)

    def usage(self) -> dict[str, Any]:
        """OpenAI's usage object so far."""
        prompt = sum(map(len, self._asked.prompts))
        return {
            "prompt_tokens": prompt,
            "completion_tokens": self._generated,
            "total_tokens": prompt + self._generated,
            "prompt_tokens_details": {"cached_tokens": sum(self._cached.values())},
        }


class Answering:
    """The answer to one request, from submission to its end; an ASGI application for just that."""

    def __init__(self, driver: Driver, served: Served, asked: Asked, dialect: Dialect) -> None:
        self._driver, self._asked, self._dialect, self._tokenizer = driver, asked, dialect, served.tokenizer
        self._logprobs = asked.settings.logprobs is not None
        self._head = {
            "id": f"{dialect.prefix}{uuid.uuid4().hex}",
            "object": dialect.chunk if asked.stream else dialect.kind,
            "created": int(time.time()),
            "model": served.name,
            "system_fingerprint": f"servewise-{served.version}",
        }

    async def respond(self, scope: Scope, receive: Receive, send: Send, arrival_s: float) -> None:
        """Submit, answer, and free what is still held however it ends."""
        await _while_connected(receive, self._respond(scope, receive, send, arrival_s))

    async def _respond(self, scope: Scope, receive: Receive, send: Send, arrival_s: float) -> None:
        try:
            reply = await self._driver.submit(self._asked.wanted(), arrival_s)
        except InputError as error:
            raise fault_of(error) from None
        reply.on_lost = scope.get("extensions", {}).get(ABORT)
        try:
            if self._asked.stream:
                await self._stream(reply, send)
            else:
                await (await self._whole(reply))(scope, receive, send)
        finally:
            self._driver.cancel(reply)

    async def _whole(self, reply: Reply) -> Response:
        counter, tokens = Counter(self._asked), [list[Token]() for _ in range(reply.choices)]
        async for token in _tokens(reply):
            counter.count(token)
            tokens[token.index].append(token)
        choices = [self._dialect.whole(index, each, self._logprobs) for index, each in enumerate(tokens)]
        return JSONResponse(self._head | {"choices": choices, "usage": counter.usage()})

    async def _stream(self, reply: Reply, send: Send) -> None:
        headers = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-cache")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        try:
            async for chunk in self._chunks(reply):
                await _say(send, json.dumps(chunk, ensure_ascii=False, separators=(",", ":")))
        except Fault as fault:
            await _say(send, json.dumps(fault.document()))
        await _say(send, "[DONE]")
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _chunks(self, reply: Reply) -> AsyncIterator[dict[str, Any]]:
        counter, offsets = Counter(self._asked), [0] * reply.choices
        begun: set[int] = set()
        async for token in _tokens(reply):
            counter.count(token)
            piece = self._dialect.piece(token, token.index not in begun, self._logprobs, offsets[token.index])
            begun.add(token.index)
            if self._logprobs:
                offsets[token.index] += len(token_text(self._tokenizer, token.choice.token))
            usage = {"usage": counter.usage() if self._asked.running_usage else None} if self._asked.usage else {}
            yield self._head | {"choices": [piece]} | usage
        if self._asked.usage:
            yield self._head | {"choices": [], "usage": counter.usage()}


async def _tokens(reply: Reply) -> AsyncIterator[Token]:
    """The tokens of all choices until the last has ended; raises Fault where one failed."""
    left = reply.choices
    while left:
        match await reply.events.get():
            case Token() as token:
                yield token
            case Ended(error=""):
                left -= 1
            case Ended(error=error):
                raise _failed(error)
            case Accepted():
                pass


def _failed(error: str) -> Fault:
    """503 where the server stopped amid it, so that a client asks another; else 500."""
    if error == STOPPING:
        return Fault(error, status=503, code="stopping", headers={"retry-after": "1", "connection": "close"})
    return Fault(error, status=500, code="generation_failed")


async def _say(send: Send, data: str) -> None:
    await send({"type": "http.response.body", "body": f"data: {data}\n\n".encode(), "more_body": True})


async def _while_connected(receive: Receive, work: Coroutine[Any, Any, T]) -> T | None:
    """Run ``work`` to its end, or cancel it as soon as the client has gone; None then."""
    doing, gone = asyncio.ensure_future(work), asyncio.ensure_future(_disconnected(receive))
    try:
        await asyncio.wait({doing, gone}, return_when=asyncio.FIRST_COMPLETED)
        return doing.result() if doing.done() else None
    finally:
        for each in (doing, gone):
            each.cancel()
        await asyncio.gather(doing, gone, return_exceptions=True)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
