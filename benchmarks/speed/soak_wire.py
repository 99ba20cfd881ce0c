"""HTTP by hand over asyncio, so that a client can leave, stall or lie at any moment."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

Pair = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass(frozen=True)
class Reply:
    """An answer as it came."""

    status: int
    headers: dict[str, str]
    body: bytes

    def document(self) -> Any:
        """Its JSON."""
        return json.loads(self.body)

    def events(self) -> list[Any]:
        """A stream's documents, without the last word."""
        lines = [line[6:] for line in self.body.decode().split("\n") if line.startswith("data: ")]
        if not lines or lines[-1] != "[DONE]":
            raise ValueError("the stream has no end")
        return [json.loads(line) for line in lines[:-1]]


def request(path: str, body: object, key: str) -> bytes:
    """The bytes of a POST; a body of bytes as it is."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        f"authorization: Bearer {key}\r\ncontent-length: {len(data)}\r\nconnection: close\r\n\r\n"
    )
    return head.encode() + data


@asynccontextmanager
async def connected(url: str, receive_bytes: int | None = None) -> AsyncIterator[Pair]:
    """A connection; aborted at the end of the block, so that whatever is unread is dropped."""
    where = urlsplit(url)
    plug = socket.socket()
    plug.setblocking(False)
    if receive_bytes is not None:
        plug.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    await asyncio.get_running_loop().sock_connect(plug, (where.hostname, where.port))
    reader, writer = await asyncio.open_connection(sock=plug, limit=receive_bytes or 1 << 16)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    """Status and headers."""
    lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    pairs = (line.partition(":") for line in lines[1:] if line)
    return int(lines[0].split()[1]), {name.lower(): value.strip() for name, _, value in pairs}


async def answered(reader: asyncio.StreamReader) -> Reply:
    """The whole answer."""
    status, headers = await head(reader)
    if headers.get("transfer-encoding") == "chunked":
        return Reply(status, headers, b"".join([part async for part in chunks(reader)]))
    return Reply(status, headers, await reader.readexactly(int(headers.get("content-length", 0))))


async def chunks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """The chunks of a chunked body; raises IncompleteReadError where it breaks off."""
    while size := int(await reader.readuntil(b"\r\n"), 16):
        yield (await reader.readexactly(size + 2))[:-2]
    await reader.readexactly(2)
