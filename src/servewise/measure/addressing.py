"""From the address that a user types to the one endpoint that is measured."""

from __future__ import annotations

import re
from typing import NoReturn
from urllib.parse import SplitResult, urlsplit

from servewise.errors import InputError
from servewise.measure.target import Api, Target, Timeouts

ENDPOINTS: dict[Api, str] = {"chat": "/chat/completions", "completions": "/completions"}
DEFAULT_PORTS = {"http": 80, "https": 443}
EXAMPLE = "write it like http://localhost:8000 or https://host/v1"
OWN_HEADERS = {"host", "content-length", "transfer-encoding", "connection", "accept-encoding"}
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110, section 5.6.2
_VERSION = re.compile(r"/v\d+\w*$")


def target_of(
    url: str,
    *,
    model: str,
    api: Api = "chat",
    key: str | None = None,
    headers: tuple[tuple[str, str], ...] = (),
    verify_tls: bool = True,
    keep_alive: bool = True,
    timeouts: Timeouts | None = None,
) -> Target:
    """The endpoint that ``url`` means: ``http://host:port``, ``.../v1`` or the whole endpoint.

    InputError for anything else, for a header or key that HTTP cannot carry, and for an endpoint of the other ``api``.

    >>> target_of("http://localhost:8000", model="m").path
    '/v1/chat/completions'
    >>> target_of("https://[::1]/proxy/v1/", model="m", api="completions").path
    '/proxy/v1/completions'
    """
    parts = _split(url)
    prefix, path = _path(parts, api, url)
    for name, value in headers:
        _check_header(name, value)
    if key is not None and not _printable(key):
        raise InputError("the key holds characters that HTTP headers cannot carry", where="key")  # never shown
    return Target(
        scheme="https" if parts.scheme == "https" else "http",
        host=parts.hostname or "",
        port=_port(parts, url) or DEFAULT_PORTS[parts.scheme],
        path=path,
        model=model,
        api=api,
        key=key,
        headers=headers,
        verify_tls=verify_tls,
        keep_alive=keep_alive,
        metrics_path=f"{prefix}/metrics",
        timeouts=timeouts or Timeouts(),
    )


def _split(url: str) -> SplitResult:
    if not url.isascii() or not url.isprintable() or " " in url:
        _refuse(url, "holds spaces or characters that an address cannot have (a host outside ASCII: as punycode)")
    try:
        parts = urlsplit(url)
    except ValueError:
        _refuse(url, "is no address")
    if parts.scheme not in DEFAULT_PORTS:
        _refuse(url, "does not begin with http:// or https://")
    if "@" in parts.netloc:
        raise InputError("an address may hold no user or password", where="URL", hint="give the key by its own option")
    if not parts.hostname or not re.fullmatch(r"[0-9A-Za-z._:%-]+", parts.hostname):
        _refuse(url, "names no host")
    if parts.fragment:
        _refuse(url, "holds a fragment (#), which is never sent")
    return parts


def _port(parts: SplitResult, url: str) -> int | None:
    try:
        port = parts.port
    except ValueError:
        _refuse(url, "has a port that is no number from 1 to 65535")
    if port == 0:
        _refuse(url, "has a port that is no number from 1 to 65535")
    return port


def _path(parts: SplitResult, api: Api, url: str) -> tuple[str, str]:
    """What stands before the API's version, and the endpoint's whole path with its query."""
    path, query = parts.path.rstrip("/"), f"?{parts.query}" if parts.query else ""
    for known, ending in ENDPOINTS.items():  # chat first: its ending holds the other's
        if path.endswith(ending):
            if known != api:
                _refuse(url, f"is the endpoint of the {known} API, and {api} is asked for")
            return _VERSION.sub("", path.removesuffix(ending)), path + query
    base = path if _VERSION.search(path) else f"{path}/v1"
    return _VERSION.sub("", base), base + ENDPOINTS[api] + query


def _check_header(name: str, value: str) -> None:
    if not _TOKEN.fullmatch(name) or not _printable(value):
        raise InputError(f"header {name[:40]!r} is none that HTTP can carry", where="headers")
    if name.lower() in OWN_HEADERS:
        raise InputError(f"header {name!r} is set by the client itself", where="headers", hint="leave it out")


def _printable(text: str) -> bool:
    return text.isascii() and text.isprintable() and text == text.strip()


def _refuse(url: str, what: str) -> NoReturn:
    raise InputError(f"{url[:100]!r} {what}", where="URL", hint=EXAMPLE)
