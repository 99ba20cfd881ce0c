"""Who may come to a server: the keys that clients bring, the names that it goes by, and who can reach its address."""

from __future__ import annotations

import socket
from pathlib import Path

from servewise.ask.serve_options import ServeOptions
from servewise.engine.server.keys import checked_key, keys_in
from servewise.engine.server.listening import is_loopback
from servewise.errors import InputError

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


def keys_of(options: ServeOptions) -> tuple[str, ...]:
    """The keys that clients may bring."""
    if options.key is not None and options.key_file is not None:
        raise InputError("is given twice, by itself and as a file", where="API key", hint="give one")
    if options.key is not None:
        return (checked_key(options.key, "API key"),)
    return keys_in(Path(options.key_file)) if options.key_file is not None else ()


def check_open(listener: socket.socket, options: ServeOptions, keys: tuple[str, ...]) -> None:
    """Refuse an address that other machines can reach, without a key, unless it is meant so."""
    if not (is_loopback(listener) or keys or options.no_key):
        hint = "--api-key-file FILE or SERVEWISE_API_KEY; --no-api-key if something else keeps strangers out"
        raise InputError("other machines can reach it, and no API key is asked for", where=options.host, hint=hint)


def names_of(listener: socket.socket, options: ServeOptions, keys: tuple[str, ...]) -> frozenset[str] | None:
    """The host names that a request may give; None: any, since it needs a key or other machines may come."""
    return LOOPBACK_NAMES | {options.host.lower()} if is_loopback(listener) and not keys else None
