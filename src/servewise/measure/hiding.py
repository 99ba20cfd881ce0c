"""What a server says, without the key that it was sent: errors quote requests, and reasons are kept with the run."""

from __future__ import annotations

from urllib.parse import parse_qsl, unquote

from servewise.measure.target import Target

LEAST = 6  # letters: what is shorter is no secret, and common in words
HIDDEN = "(hidden)"


def secrets_of(target: Target) -> tuple[str, ...]:
    """The words of its key, of its headers' values and of its query's, the longest first."""
    query = target.path.partition("?")[2]
    given = [target.key or "", *(value for _, value in target.headers), *(value for _, value in parse_qsl(query))]
    words = {word for each in given for word in each.split() if len(word) >= LEAST}
    return tuple(sorted(words, key=lambda word: (-len(word), word)))


def hidden(text: str, secrets: tuple[str, ...]) -> str:
    """``text`` without ``secrets``, also without the beginning of one that was cut off at its end.

    >>> hidden("wrong key sk-123456, given sk-1234…", ("sk-123456",))
    'wrong key (hidden), given (hidden)…'
    """
    for secret in secrets:
        text = text.replace(secret, HIDDEN)
        whole = text.removesuffix("…")
        cut = next((size for size in range(len(secret) - 1, LEAST - 1, -1) if whole.endswith(secret[:size])), 0)
        if cut:
            text = whole[:-cut] + HIDDEN + text[len(whole) :]
    return text


def shown_address(target: Target) -> str:
    """Where ``target`` is, for messages and records: the values of its query may be keys.

    >>> from servewise.measure.addressing import target_of
    >>> shown_address(target_of("http://host:8000/v1?key=abc", model="m"))
    'http://host:8000/v1/chat/completions?key=(hidden)'
    """
    path, mark, query = target.path.partition("?")
    names = "&".join(f"{unquote(each.partition('=')[0])}={HIDDEN}" for each in query.split("&"))
    return target.origin + path + (mark + names if mark else "")
