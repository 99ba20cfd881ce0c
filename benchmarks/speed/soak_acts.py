"""What the clients of the soak do; each act ends as one counted outcome, and what must not be is noted as wrong."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from benchmarks.speed.soak_server import MODEL
from benchmarks.speed.soak_wire import Pair, Reply, answered, chunks, connected, head, request

BOUND_S = 300.0  # no act may take longer: it would be a hang (on a busy machine a full house takes minutes)
MOST_WRONG = 50
CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
PREFIX = "The sea is wide and the boats are small. " * 8  # some 90 tokens that prompts share
TAILS = (("Once", 24), ("Why", 40), ("A list: 1,", 12), ("In the end", 64), ("Rain", 8))
Path_Body = tuple[str, dict[str, Any]]


def catalogue() -> list[Path_Body]:
    """The requests whose answers are known; some sampled with a seed, some of two choices, some with a stop."""
    found: list[Path_Body] = []
    for at, (tail, tokens) in enumerate(
        (("Once", 24), ("Why", 40), ("A list: 1,", 12), ("In the end", 64), ("Rain", 8))
    ):
        found.append((COMPLETIONS, {"prompt": PREFIX + tail, "max_tokens": tokens, "temperature": 0}))
        found.append((COMPLETIONS, {"prompt": tail, "max_tokens": tokens, "temperature": 0.8, "seed": at, "n": 2}))
        asked = [{"role": "user", "content": f"Tell me about this: {tail}."}]
        found.append((CHAT, {"messages": asked, "max_tokens": tokens, "temperature": 0}))
        found.append((CHAT, {"messages": asked, "max_tokens": tokens, "temperature": 0, "stop": ["e "]}))
    return [(path, {"model": MODEL} | body) for path, body in found]


def texts_of(path: str, reply: Reply, stream: bool) -> list[str]:
    """The text of each choice."""
    key = "message" if path == CHAT else "text"
    if not stream:
        found = [each[key] for each in reply.document()["choices"]]
        return [each["content"] if path == CHAT else each for each in found]
    texts: Counter[int] = Counter()
    joined: dict[int, str] = {}
    for event in reply.events():
        for each in event["choices"]:
            piece = each["delta"].get("content", "") if path == CHAT else each["text"]
            joined[each["index"]] = joined.get(each["index"], "") + piece
            texts[each["index"]] += 1
    return [joined[index] for index in sorted(joined)]


class Soak:
    """The client's side: where to send, what is known, what has happened. ``every``: one in so many requests.

    ``patience_s``: how long a reader that does not read waits at most.
    """

    def __init__(self, url: str, key: str, every: int = 1, patience_s: float = 60.0) -> None:
        self.url, self.key, self.patience_s = url, key, patience_s
        self.requests = catalogue()[::every]
        self.references: list[list[str]] = []
        self.outcomes: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.compared = 0
        self.start_s = time.monotonic()

    @property
    def now_s(self) -> float:
        """Seconds since it was made."""
        return time.monotonic() - self.start_s

    @property
    def total(self) -> int:
        """Acts that have ended."""
        return sum(self.outcomes.values())

    @staticmethod
    def stream(seed: int) -> random.Random:
        """A client's own randomness."""
        return random.Random(seed)

    async def act(self, name: str, rng: random.Random) -> None:
        """One act, counted by how it ended."""
        try:
            async with asyncio.timeout(BOUND_S):
                outcome = await ACTS[name][1](self, rng)
        except TimeoutError:
            outcome = self.wronged(name, f"no end within {BOUND_S:.0f} s")
        except Exception as error:  # whatever it is, it is an outcome
            outcome = self.wronged(name, f"{type(error).__name__}: {error}")
        self.outcomes[f"{name}: {outcome}"] += 1

    def wronged(self, name: str, what: str) -> str:
        """Note what must not be."""
        if len(self.wrong) < MOST_WRONG:
            self.wrong.append(f"{self.now_s:.1f} s, {name}: {what}"[:300])
        return "WRONG"

    async def ask(self, path: str, body: object, key: str | None = None) -> Reply:
        """Send and read to the end."""
        async with connected(self.url) as (reader, writer):
            writer.write(request(path, body, self.key if key is None else key))
            return await answered(reader)

    async def page(self) -> dict[str, float]:
        """What ``/metrics`` says, samples by name and labels."""
        async with connected(self.url) as (reader, writer):
            writer.write(b"GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
            reply = await answered(reader)
        lines = (line.rsplit(" ", 1) for line in reply.body.decode().splitlines() if not line.startswith("#"))
        return {name: float(value) for name, value in lines}

    async def metrics(self) -> dict[str, float]:
        """Of them, what tells of leaks."""
        page = await self.page()
        names = ("vllm:kv_cache_usage_perc", "vllm:num_requests_running", "servewise:choices_inside")
        found = [next(value for key, value in page.items() if key.startswith(name)) for name in names]
        return dict(zip(("kv_use", "running", "inside"), found, strict=True))

    async def until_idle(self) -> None:
        """Wait until nothing runs."""
        async with asyncio.timeout(BOUND_S):
            while (told := await self.metrics())["running"] or told["inside"]:
                await asyncio.sleep(0.2)

    def checked(self, name: str, at: int, reply: Reply, stream: bool) -> str:
        """Whether an answer is the known one."""
        if reply.status == 429 and "retry-after" in reply.headers:
            return "429, come again"
        if reply.status != 200:
            return self.wronged(name, f"{reply.status} {reply.body[:200]!r}")
        self.compared += 1
        texts = texts_of(self.requests[at][0], reply, stream)
        if texts != self.references[at]:
            return self.wronged(name, f"request {at} gave {texts!r:.120}, alone {self.references[at]!r:.120}")
        return "as alone"


async def references(soak: Soak) -> list[list[str]]:
    """The answers of all requests, one at a time."""
    found = []
    for path, body in soak.requests:
        reply = await soak.ask(path, body)
        if reply.status != 200:
            raise RuntimeError(f"no reference: {reply.status} {reply.body[:200]!r}")
        found.append(texts_of(path, reply, stream=False))
    return found


async def warmed(soak: Soak) -> None:
    """A full house of long prompts, then each act: what grows once has grown before growth is looked at."""
    body = {"model": MODEL, "prompt": PREFIX * 4, "max_tokens": 60, "ignore_eos": True, "logprobs": 20}
    await asyncio.gather(*(soak.ask(COMPLETIONS, body | {"seed": each}) for each in range(12)))
    rng = soak.stream(0)
    await asyncio.gather(*(soak.act(name, rng) for name in ACTS))
    await soak.until_idle()


async def _known(soak: Soak, rng: random.Random, *, stream: bool) -> str:
    at = rng.randrange(len(soak.requests))
    path, body = soak.requests[at]
    return soak.checked("known", at, await soak.ask(path, body | {"stream": stream}), stream)


async def _whole(soak: Soak, rng: random.Random) -> str:
    return await _known(soak, rng, stream=False)


async def _streamed(soak: Soak, rng: random.Random) -> str:
    return await _known(soak, rng, stream=True)


async def _burst(soak: Soak, rng: random.Random) -> str:
    found = await asyncio.gather(*(_known(soak, rng, stream=bool(each % 2)) for each in range(10)))
    return "WRONG" if "WRONG" in found else "some 429" if "429, come again" in found else "all as alone"


def _long(soak: Soak, rng: random.Random, stream: bool) -> bytes:
    body = {"model": MODEL, "prompt": PREFIX * rng.randint(1, 3), "max_tokens": 200, "ignore_eos": True}
    return request(COMPLETIONS, body | {"stream": stream, "n": rng.choice((1, 1, 2))}, soak.key)


async def _leaving(soak: Soak, rng: random.Random) -> str:
    """A stream that is left after some of its events."""
    async with connected(soak.url) as (reader, writer):
        writer.write(_long(soak, rng, stream=True))
        status, _ = await head(reader)
        if status != 200:
            return f"{status}" if status == 429 else soak.wronged("leaving", str(status))
        left = rng.randint(0, 20)
        async for _ in chunks(reader):
            left -= 1
            if left < 0:
                break
    return "left"


async def _hanging_up(soak: Soak, rng: random.Random) -> str:
    """A whole answer, or half a body, that is not waited for: it may wait, compute its prompt, or decode by then."""
    sent = _long(soak, rng, stream=False)
    async with connected(soak.url) as (_, writer):
        writer.write(sent if rng.random() < 0.8 else sent[: rng.randint(1, len(sent))])
        await writer.drain()
        await asyncio.sleep(rng.choice((0.0, 0.01, 0.1, 0.5, 2.0)))
    return "left"


async def _not_reading(soak: Soak, rng: random.Random) -> str:
    """A stream that nobody reads, with small buffers: the server ends it."""
    async with connected(soak.url, receive_bytes=2048) as (reader, writer):
        body = {"model": MODEL, "prompt": "Go on:", "max_tokens": 200, "n": 2, "ignore_eos": True, "logprobs": 20}
        writer.write(request(COMPLETIONS, body | {"stream": True}, soak.key))
        status, _ = await head(reader)
        if status != 200:
            return f"{status}" if status == 429 else soak.wronged("not reading", str(status))
        await asyncio.sleep(rng.uniform(0.2, 1.0) * soak.patience_s)
        return await _drained(reader)


async def _drained(reader: asyncio.StreamReader) -> str:
    try:
        async for _ in chunks(reader):
            pass
    except (ConnectionError, asyncio.IncompleteReadError):
        return "ended by the server"
    return "all had been sent"


NONSENSE: tuple[tuple[object, int], ...] = (
    (b"{", 400),
    (b"[" * 5000, 400),
    (b"\xff\xfe\x00", 400),
    ({"model": MODEL}, 400),
    ({"model": "../../etc/passwd", "prompt": "a"}, 404),
    ({"model": MODEL, "prompt": [10**9]}, 400),
    ({"model": MODEL, "prompt": "a", "max_tokens": 10**9}, 400),
    ({"model": MODEL, "prompt": "a", "temperature": "hot"}, 400),
    ({"model": MODEL, "prompt": "a", "n": 200}, 400),
    ({"model": MODEL, "prompt": "a" * 200_000}, 400),
    (b" " * 300_000, 413),
)


async def _nonsense(soak: Soak, rng: random.Random) -> str:
    body, wanted = rng.choice(NONSENSE)
    reply = await soak.ask(COMPLETIONS, body)
    if reply.status == 429:
        return "429, come again"
    fine = reply.status == wanted and "message" in reply.document()["error"]
    return f"{wanted}" if fine else soak.wronged("nonsense", f"{body!r:.60}: {reply.status}, not {wanted}")


async def _wrong_key(soak: Soak, rng: random.Random) -> str:
    key = rng.choice(("", "sk-wrong", soak.key[:-1], soak.key + "x", "\x7f" * 100))
    reply = await soak.ask(CHAT, {}, key)
    return "401" if reply.status == 401 else soak.wronged("wrong key", str(reply.status))


async def _no_http(soak: Soak, rng: random.Random) -> str:
    """Random bytes: an error or a closed connection, and soon."""
    async with connected(soak.url) as (reader, writer):
        writer.write(rng.randbytes(rng.randint(1, 2000)) + b"\r\n\r\n")
        try:
            status = (await head(reader))[0]
        except (ConnectionError, asyncio.IncompleteReadError):
            return "closed"
    return f"{status}" if 400 <= status < 500 else soak.wronged("no http", str(status))


async def _half_a_head(soak: Soak, _: random.Random) -> str:
    """Slow loris: a head that does not end."""
    async with connected(soak.url) as (reader, writer):
        writer.write(b"POST /v1/completions HTTP/1.1\r\nhost: localhost\r\nx-")
        reply = await answered(reader)
    return "408" if reply.status == 408 else soak.wronged("half a head", str(reply.status))


async def _half_a_body(soak: Soak, _: random.Random) -> str:
    async with connected(soak.url) as (reader, writer):
        writer.write(request(COMPLETIONS, {"model": MODEL, "prompt": "a"}, soak.key)[:-3])
        reply = await answered(reader)
    return f"{reply.status}" if reply.status in (408, 429) else soak.wronged("half a body", str(reply.status))


async def _looking(soak: Soak, _: random.Random) -> str:
    """Health, readiness, and the pages."""
    found = []
    for path in ("/health", "/ready", "/version", "/openapi.json"):
        async with connected(soak.url) as (reader, writer):
            writer.write(f"GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n".encode())
            found.append((await answered(reader)).status)
    return "200" if set(found) == {200} else soak.wronged("looking", json.dumps(found))


Act = Callable[[Soak, random.Random], Awaitable[str]]
ACTS: dict[str, tuple[float, Act]] = {
    "whole": (20, _whole),
    "streamed": (20, _streamed),
    "burst": (2, _burst),
    "leaving": (10, _leaving),
    "hanging up": (10, _hanging_up),
    "not reading": (2, _not_reading),
    "nonsense": (10, _nonsense),
    "wrong key": (5, _wrong_key),
    "no http": (5, _no_http),
    "half a head": (2, _half_a_head),
    "half a body": (2, _half_a_body),
    "looking": (5, _looking),
}
__all__ = ["ACTS", "Pair", "Soak", "references", "warmed"]
