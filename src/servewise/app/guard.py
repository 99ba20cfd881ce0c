"""What a server on loopback must refuse: other hosts' names, other sites' requests, and what a page may load."""

from __future__ import annotations

from collections.abc import Iterable

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "style-src-attr 'unsafe-inline'",  # charts colour themselves by style attributes, which carry no script
        "img-src 'self' data: blob:",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}
READING = ("GET", "HEAD")


class Guard:
    """Lets through requests to one of ``hosts`` (``127.0.0.1:8010``); what changes anything must come from the page."""

    def __init__(self, app: ASGIApp, hosts: Iterable[str]) -> None:
        self._app, self._hosts = app, frozenset(hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, or pass on with the headers that every reply carries."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        refused = self._refused(scope["method"], Headers(scope=scope))
        await (PlainTextResponse(refused, status_code=403) if refused else self._app)(scope, receive, guarded)

    def _refused(self, method: str, headers: Headers) -> str:
        host = headers.get("host", "")
        if host not in self._hosts:
            return "this page is asked for under another name than its own"
        if method in READING:
            return ""
        origin = headers.get("origin")
        own = origin == f"http://{host}" if origin else headers.get("sec-fetch-site") == "same-origin"
        return "" if own else "only the page itself may ask for this"
