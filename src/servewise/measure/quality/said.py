"""What a server said of each token of an answer, in whichever of the two shapes of the OpenAI API."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import exp, isfinite

from servewise.measure.exchange import Exchange


@dataclass(frozen=True, slots=True)
class Said:
    """A token by its bytes, and the probabilities of the alternatives that were returned, itself among them if told."""

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
    return tuple(found)


def _alternatives(top: object) -> Iterable[tuple[bytes, float]]:
    """Chat gives a list of entries, completions a table of token and logprob."""
    if isinstance(top, Mapping):
        pairs = [(str(token).encode("utf-8", "replace"), _share(value)) for token, value in top.items()]
    elif isinstance(top, list):
        pairs = [(_bytes(each) or b"", _share(each.get("logprob"))) for each in top if isinstance(each, Mapping)]
    else:
        pairs = []
    return [(token, share) for token, share in pairs if token and share is not None]


def _bytes(entry: Mapping[str, object]) -> bytes | None:
    """The token's own bytes where they are told (a part of a character has no text), else its text."""
    told, text = entry.get("bytes"), entry.get("token")
    if isinstance(told, list) and told and all(isinstance(each, int) and 0 <= each < 256 for each in told):
        return bytes(told)
    return text.encode("utf-8", "replace") if isinstance(text, str) and text else None


def _share(logprob: object) -> float | None:
    """The probability; None for what is no log of one (some servers write -9999 for nought)."""
    if isinstance(logprob, bool) or not isinstance(logprob, (int, float)) or not isfinite(logprob):
        return None
    return exp(min(float(logprob), 0.0))
