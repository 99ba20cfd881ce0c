"""A request's body: JSON by its type, in time, and of a size that all bodies together can have."""

from __future__ import annotations

import asyncio

from starlette.requests import Request

from servewise.engine.server.fault import Fault
from servewise.engine.server.limits import Limits


class Bodies:
    """Reads bodies within ``limits``; ``held`` counts the bytes of those that are being read."""

    def __init__(self, limits: Limits) -> None:
        self._limits, self.held = limits, 0

    async def read(self, request: Request) -> bytes:
        """The body; raises Fault for another type (415), a size (413), a time (408), too many at once (429)."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise Fault("send the body as content-type application/json", status=415, code="unsupported_media_type")
        self._check_announced(request)
        try:
            async with asyncio.timeout(self._limits.body_s):
                return await self._read(request)
        except TimeoutError:
            headers = {"connection": "close"}
            raise Fault("the body took too long", status=408, code="timeout", headers=headers) from None

    def _check_announced(self, request: Request) -> None:
        announced = request.headers.get("content-length", "")
        if announced.isdecimal() and int(announced[:20]) > self._limits.body_bytes:
            raise self._too_large()

    async def _read(self, request: Request) -> bytes:
        parts, size = [], 0
        try:
            async for part in request.stream():
                parts.append(part)
                size += len(part)
                self.held += len(part)
                if size > self._limits.body_bytes:
                    raise self._too_large()
                if self.held > self._limits.bodies_bytes:
                    message = "too many large bodies are being read"
                    raise Fault(message, status=429, code="overloaded", headers={"retry-after": "1"})
            return b"".join(parts)
        finally:
            self.held -= size

    def _too_large(self) -> Fault:
        return Fault(f"the body has over {self._limits.body_bytes} bytes", status=413, code="body_too_large")
