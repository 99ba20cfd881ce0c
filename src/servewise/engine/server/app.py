"""The routes of the API as an ASGI application."""

from __future__ import annotations

import asyncio
import hmac
import re
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
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
from servewise.engine.server.body import Bodies
from servewise.engine.server.dialect import ChatDialect, CompletionDialect, Dialect
from servewise.engine.server.door import Door
from servewise.engine.server.driver import Driver
from servewise.engine.server.fault import Fault
from servewise.engine.server.fields import parsed
from servewise.engine.server.limits import Limits
from servewise.engine.server.meters import Meters
from servewise.engine.server.openapi import openapi
from servewise.engine.server.protocol import Watched

Reader = Callable[[Mapping[str, Any], Served], Asked]
HOST = re.compile(r"(?:\[([^\]]*)\]|([^:\[\]]*))(?::[0-9]*)?")


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
            api.door.check()
            body = parsed(await api.bodies.read(request))
            asked = await asyncio.to_thread(self._read, body, api.served)
            with api.door.entered(asked.choices):
                answering = Answering(api.driver, api.served, asked, self._dialect)
                await answering.respond(scope, receive, send, arrival_s)
        except Fault as fault:
            await _refused(fault)(scope, receive, send)
        except ClientDisconnect:  # in the middle of its own request: there is nobody to answer, nothing was begun
            pass


class Api:
    """``served`` through ``driver``; with ``keys`` every request under /v1 must bring one as a bearer token.

    ``places``: choices that may run and wait at once. ``hosts``: the names by which the server may be called (None:
    any); a page of the web cannot reach it then under a name of its own (DNS rebinding).
    """

    def __init__(
        self,
        driver: Driver,
        served: Served,
        meters: Meters,
        keys: Sequence[str] = (),
        *,
        places: int = 1 << 20,
        limits: Limits | None = None,
        hosts: frozenset[str] | None = None,
    ) -> None:
        self.driver, self.served, self.meters = driver, served, meters
        self.limits = limits or Limits()
        self.door, self.bodies, self.watched = Door(places), Bodies(self.limits), Watched()
        self._keys = [each.encode("utf-8", "surrogateescape") for each in keys]
        self._hosts = hosts
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
                Route("/ready", self.ready),
                Route("/metrics", self.metrics),
                Route("/version", self.version),
                Route("/openapi.json", self.openapi),
            ],
            exception_handlers={Fault: _on_fault, HTTPException: _on_http, Exception: _on_defect},
            lifespan=self._lifespan,
        )

    def admit(self, request: Request) -> None:
        """Raise Fault: 403 under another's name; 401 where a key is wanted and not brought, compared in constant time.

        Every key is compared, whichever fits, so that the time does not tell which one nearly did.
        """
        if self._hosts is not None and _host(request) not in self._hosts:
            message = "this server answers to its own address only; with a key it answers to any name"
            raise Fault(message, status=403, code="unknown_host")
        if not self._keys:
            return
        scheme, _, brought = request.headers.get("authorization", "").partition(" ")
        token = brought.strip().encode("latin-1")
        same = [hmac.compare_digest(token, each) for each in self._keys]
        if scheme.lower() != "bearer" or not any(same):
            headers = {"www-authenticate": "Bearer"}
            message = "wrong or missing API key; send it as a bearer token"
            raise Fault(message, status=401, code="invalid_api_key", headers=headers)

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
        """Liveness: 200 while the engine steps, else 503: only a new process mends it."""
        return Response(status_code=503 if self.driver.trouble else 200)

    async def ready(self, _: Request) -> Response:
        """Readiness: 200 while requests are taken; 503 while the server stops, or where the engine does not step."""
        reason = self.driver.trouble or ("the server is stopping" if self.door.closed else "")
        if reason:
            raise Fault(reason, status=503, code="not_ready", headers={"retry-after": "1"})
        return JSONResponse({"status": "ready"})

    async def metrics(self, _: Request) -> Response:
        """Counters for Prometheus."""
        text = self.meters.text() + self.meters.edge(self.door.inside, self.door.turned_away, self.watched.counts)
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4")

    async def version(self, _: Request) -> Response:
        """Ours."""
        return JSONResponse({"version": self.served.version})

    async def openapi(self, _: Request) -> Response:
        """What is accepted, as an OpenAPI document."""
        return JSONResponse(openapi(self.served, keyed=bool(self._keys)))

    @asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        self.driver.start()
        try:
            yield
        finally:
            await self.driver.stop()


def _host(request: Request) -> str:
    """The name in the Host header, without its port; nothing where what follows the name is no port."""
    found = HOST.fullmatch(request.headers.get("host", ""))
    return (found[1] or found[2]).lower() if found else ""


def _refused(fault: Fault) -> Response:
    return Response(fault.text(), fault.status, fault.headers, media_type="application/json")


async def _on_fault(_: Request, error: Exception) -> Response:
    assert isinstance(error, Fault)
    return _refused(error)


async def _on_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    message = f"{request.method} {request.url.path[:200]}: {error.detail.lower()}"
    return _refused(Fault(message, status=error.status_code, headers=error.headers))


async def _on_defect(_: Request, error: Exception) -> Response:  # noqa: ARG001 - the log has its traceback
    return _refused(Fault("a defect of the server; its log says more", status=500))
