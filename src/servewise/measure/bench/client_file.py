"""How the client kept up, sample by sample: ``client.json`` of a measured run, so that figures can be made again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from servewise.errors import InputError
from servewise.measure.sending import HostShare, Sending

CLIENT = "client.json"


def client_bytes(sending: Sending) -> bytes:
    """The file."""
    return json.dumps(asdict(sending), separators=(",", ":")).encode()


def client_again(data: bytes, where: str) -> Sending:
    """What the file says; InputError where it is none."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InputError("is no JSON", where=where) from error
    known = {each.name for each in fields(Sending)}
    if not isinstance(found, Mapping) or not set(found) <= known:
        raise InputError("is no account of a client", where=where)
    hosts = tuple(HostShare(**each) for each in found.get("hosts", ()))
    return Sending(**{name: _value(value) for name, value in found.items()} | {"hosts": hosts})


def _value(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
