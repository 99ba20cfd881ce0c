"""What a server said of each token of an answer, in whichever of the two shapes of the OpenAI API."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import exp, isfinite

from servewise.measure.exchange import Exchange

END = b""  # the token that ends an answer and is no part of its text; llama.cpp tells it so, others by its name


@dataclass(frozen=True, slots=True)
class Said:
    """A token by its bytes (``END`` for the one that ends it).

    ``shares`` are the probabilities of the alternatives that were returned, its own among them if told.
    """

    token: bytes
    shares: Mapping[bytes, float] = field(default_factory=dict)


def said_by(exchange: Exchange) -> tuple[Said, ...]:
    """The tokens of an answer in order; empty where the server returned no logprobs.

    Entries of another shape end it: what comes after them has no known place.
    """
    found = []
    for entry in exchange.logprobs:
        if not isinstance(entry, Mapping) or (token := _bytes(entry)) is None:
            break
        shares = dict(_alternatives(entry.get("top_logprobs")))
        if (own := _share(entry.get("logprob"))) is not None:
            shares[token] = own
        found.append(Said(token, shares))
    return tuple(_with_end(found, exchange.text) if exchange.finish_reason == "stop" else found)


def _with_end(said: list[Said], text: str | None) -> list[Said]:
    """The last token as ``END`` where the text does not end with it."""
    if not said or text is None or text.encode("utf-8", "replace").endswith(said[-1].token) or _is_part(said[-1].token):
        return said
    name = said[-1].token
    return [
        Said(
            END if each.token == name else each.token,
            {END if token == name else token: share for token, share in each.shares.items()},
        )
        for each in said
    ]


def _is_part(token: bytes) -> bool:
    """Whether it is a part of a character, which no text shows by itself."""
    try:
        return "\ufffd" in token.decode()
    except UnicodeDecodeError:
        return True


def _alternatives(top: object) -> Iterable[tuple[bytes, float]]:
    """Chat gives a list of entries, completions a table of token and logprob."""
    pairs: list[tuple[bytes | None, float | None]] = []
    if isinstance(top, Mapping):
        pairs = [(_encoded(str(token)), _share(value)) for token, value in top.items()]
    elif isinstance(top, list):
        pairs = [(_bytes(each), _share(each.get("logprob"))) for each in top if isinstance(each, Mapping)]
    return [(token, share) for token, share in pairs if token is not None and share is not None]


def _bytes(entry: Mapping[str, object]) -> bytes | None:
    """The token's own bytes where they are told (a part of a character has no text), else its text."""
    told, text = entry.get("bytes"), entry.get("token")
    if isinstance(told, list) and told and all(isinstance(each, int) and 0 <= each < 256 for each in told):
        return bytes(told)
    return _encoded(text) if isinstance(text, str) else None


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _share(logprob: object) -> float | None:
    """The probability; None for what is no log of one (some servers write -9999 for nought)."""
    if isinstance(logprob, bool) or not isinstance(logprob, (int, float)) or not isfinite(logprob):
        return None
    return exp(min(float(logprob), 0.0))
