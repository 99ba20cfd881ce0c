"""The routes of the API as an ASGI application."""

from __future__ import annotations

import asyncio
import hmac
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from servewise.engine.server.answering import Answering
from servewise.engine.server.asked import Asked, Served, asked_chat, asked_completion, check_name
from servewise.engine.server.dialect import ChatDialect, CompletionDialect, Dialect
from servewise.engine.server.driver import Driver
from servewise.engine.server.fault import Fault
from servewise.engine.server.fields import parsed
from servewise.engine.server.meters import Meters

MOST_BODY_BYTES = 16 << 20
Reader = Callable[[Mapping[str, Any], Served], Asked]


class Generating:
    """An endpoint that generates: ``read`` makes sense of the body, ``dialect`` writes the answer."""

    def __init__(self, api: Api, read: Reader, dialect: Dialect) -> None:
        self._api, self._read, self._dialect = api, read, dialect

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        api, request = self._api, Request(scope, receive)
        arrival_s = api.driver.now_s
        try:
            api.admit(request)
            body = parsed(await _body(request))
            asked = await asyncio.to_thread(self._read, body, api.served)
            answering = Answering(api.driver, api.served, asked, self._dialect)
            await answering.respond(scope, receive, send, arrival_s)
        except Fault as fault:
            await _refused(fault)(scope, receive, send)
        except ClientDisconnect:  # in the middle of its own request: there is nobody to answer, nothing was begun
            pass


class Api:
    """``served`` through ``driver``; with ``key`` every request under /v1 must bring it as a bearer token."""

    def __init__(self, driver: Driver, served: Served, meters: Meters, key: str | None = None) -> None:
        self.driver, self.served, self.meters = driver, served, meters
        self._key = key.encode("utf-8", "surrogateescape") if key is not None else None
        self._created = int(time.time())

    def application(self) -> Starlette:
        """The ASGI application; its lifespan is the engine thread's."""
        chat = Generating(self, asked_chat, ChatDialect(self.served.tokenizer))
        completion = Generating(self, asked_completion, CompletionDialect(self.served.tokenizer))
        return Starlette(
            routes=[
                Route("/v1/chat/completions", chat, methods=["POST"]),
                Route("/v1/completions", completion, methods=["POST"]),
                Route("/v1/models", self.models),
                Route("/v1/models/{name:path}", self.model),
                Route("/health", self.health),
                Route("/metrics", self.metrics),
                Route("/version", self.version),
            ],
            exception_handlers={Fault: _on_fault, HTTPException: _on_http, Exception: _on_defect},
            lifespan=self._lifespan,
        )

    def admit(self, request: Request) -> None:
        """Raise Fault (401) where a key is wanted and not brought; compared in constant time."""
        if self._key is None:
            return
        scheme, _, brought = request.headers.get("authorization", "").partition(" ")
        same = hmac.compare_digest(brought.strip().encode("latin-1"), self._key)
        if scheme.lower() != "bearer" or not same:
            raise Fault("wrong or missing API key; send it as a bearer token", status=401, code="invalid_api_key")

    async def models(self, request: Request) -> Response:
        """The one model, as a list."""
        self.admit(request)
        return JSONResponse({"object": "list", "data": [self._model()]})

    async def model(self, request: Request) -> Response:
        """The model of that name."""
        self.admit(request)
        check_name(request.path_params["name"], self.served)
        return JSONResponse(self._model())

    def _model(self) -> dict[str, Any]:
        return {
            "id": self.served.name,
            "object": "model",
            "created": self._created,
            "owned_by": "servewise",
            "max_model_len": self.served.context_tokens,
        }

    async def health(self, _: Request) -> Response:
        """200 while the engine steps, else 503."""
        return Response(status_code=200 if self.driver.alive else 503)

    async def metrics(self, _: Request) -> Response:
        """Counters for Prometheus."""
        return PlainTextResponse(self.meters.text(), media_type="text/plain; version=0.0.4")

    async def version(self, _: Request) -> Response:
        """Ours."""
        return JSONResponse({"version": self.served.version})

    @asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        self.driver.start()
        try:
            yield
        finally:
            await self.driver.stop()


async def _body(request: Request) -> bytes:
    """The body of a JSON request, if it is one and of reasonable size."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Fault("send the body as content-type application/json", status=415, code="unsupported_media_type")
    parts, size = [], 0
    async for part in request.stream():
        parts.append(part)
        size += len(part)
        if size > MOST_BODY_BYTES:
            raise Fault(f"the body has over {MOST_BODY_BYTES} bytes", status=413, code="body_too_large")
    return b"".join(parts)


def _refused(fault: Fault) -> Response:
    headers = {"www-authenticate": "Bearer"} if fault.status == 401 else None
    text = json.dumps(fault.document())  # in ASCII: what is quoted from the request may be no UTF-8
    return Response(text, fault.status, headers, media_type="application/json")


async def _on_fault(_: Request, error: Exception) -> Response:
    assert isinstance(error, Fault)
    return _refused(error)


async def _on_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    message = f"{request.method} {request.url.path}: {error.detail.lower()}"
    return JSONResponse(Fault(message, status=error.status_code).document(), error.status_code, error.headers)


async def _on_defect(_: Request, error: Exception) -> Response:  # noqa: ARG001 - the log has its traceback
    return _refused(Fault("a defect of the server; its log says more", status=500))
