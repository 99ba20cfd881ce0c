"""The keys that clients may bring: from a file, one a line, so that one can be changed while the other still works."""

from __future__ import annotations

from pathlib import Path

from servewise.errors import InputError

MOST_BYTES = 65_536
MOST_KEYS = 64


def keys_in(path: Path) -> tuple[str, ...]:
    """The keys in the file; empty lines and those that begin with # are passed over.

    Raises InputError for a file that cannot be read, that others can read, or that holds no key. No error quotes it.
    """
    where = str(path)
    try:
        with path.open("rb") as file:
            mode, data = path.stat().st_mode, file.read(MOST_BYTES + 1)
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror})", where=where) from None
    if mode & 0o007:
        raise InputError("everybody on this machine can read these keys", where=where, hint=f"chmod o= {path}")
    lines = [line.strip() for line in data.decode("utf-8", "surrogateescape").splitlines()]
    keys = tuple(line for line in lines if line and not line.startswith("#"))
    if not keys or len(keys) > MOST_KEYS or len(data) > MOST_BYTES:
        raise InputError(f"must hold 1 to {MOST_KEYS} keys, one a line", where=where)
    for each in keys:
        checked_key(each, where)
    return keys


def checked_key(key: str, where: str) -> str:
    """``key``, if a header can carry it."""
    if not key:
        raise InputError("is empty", where=where, hint="leave it out for no key")
    if not (key.isascii() and key.isprintable()) or key != key.strip():
        raise InputError("a key must be of printable ASCII characters, with no space around it", where=where)
    return key
