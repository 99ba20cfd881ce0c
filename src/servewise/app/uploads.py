"""Files that a person gave to the page: kept while it runs, each under its contents' hash and a plain name."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from servewise.errors import InputError

MOST_BYTES = 32 * 2**20
MOST_IN_ALL = 256 * 2**20
ENDINGS = (".json", ".jsonl", ".csv", ".toml", ".gz")
RUN = re.compile(r"run:(\d{1,4})")
REFERENCE = re.compile(r"upload:([0-9a-f]{16})/([A-Za-z0-9][\w.-]{0,80})")


class Uploads:
    """A folder of its own, gone when the page is closed. A reference, ``upload:HASH/NAME``, may stand in an address."""

    def __init__(self, runs: Sequence[str] = ()) -> None:
        self.runs = tuple(runs)  # given when the page was started: ``run:0`` is the first
        self._folder = Path(tempfile.mkdtemp(prefix="servewise-app-"))

    def close(self) -> None:
        """Take the files away."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def keep(self, name: str, content: bytes) -> str:
        """The reference of a file of that name. InputError for one too large, or of a kind that nothing reads."""
        if len(content) > MOST_BYTES:
            raise InputError(f"is over {MOST_BYTES // 2**20} MiB", where=name[:80], hint="give a part of it")
        plain = _plain(name, content)
        if not plain.lower().endswith(ENDINGS):
            raise InputError("is of a kind that nothing reads", where=name[:80], hint=f"one of {', '.join(ENDINGS)}")
        target = self._folder / hashlib.sha256(content).hexdigest()[:16] / plain
        if not target.exists():
            self._has_room(len(content))
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(content)
        return f"upload:{target.parent.name}/{plain}"

    def path(self, value: str) -> str:
        """``value``, or where its file lies if it is a reference; InputError where that is no longer here."""
        found = REFERENCE.fullmatch(value)
        if found is None:
            return self._run(value) or value
        path = self.place(value)
        if not Path(path).is_file():
            raise InputError(f"{found[2]} is no longer here (the page was started anew)", hint="upload it again")
        return path

    def place(self, reference: str) -> str:
        """Where the file of that reference lies, or lay."""
        found = REFERENCE.fullmatch(reference)
        assert found, reference
        return str(self._folder / found[1] / found[2])

    def name(self, value: str) -> str:
        """How a person calls what ``value`` refers to; ``value`` itself where it is no reference."""
        return self._run(value) or name_of(value)

    def _run(self, value: str) -> str:
        found = RUN.fullmatch(value)
        if found is None:
            return ""
        if int(found[1]) >= len(self.runs):
            raise InputError(f"the page was started with {len(self.runs)} runs", hint="name it when starting the page")
        return self.runs[int(found[1])]

    def _has_room(self, size: int) -> None:
        held = sum(path.stat().st_size for path in self._folder.rglob("*") if path.is_file())
        if held + size > MOST_IN_ALL:
            raise InputError(f"over {MOST_IN_ALL // 2**20} MiB were uploaded", hint="start the page anew")


def name_of(value: str) -> str:
    """``value``, or the name of its file if it is a reference.

    >>> name_of("upload:0123456789abcdef/trace.csv"), name_of("llama-3-8b")
    ('trace.csv', 'llama-3-8b')
    """
    found = REFERENCE.fullmatch(value)
    return found[2] if found else value


def _plain(name: str, content: bytes) -> str:
    """A name without folders and odd characters; a config.json, which says nothing, is called by its kind of model."""
    plain = re.sub(r"[^\w.-]+", "-", re.split(r"[/\\]", name)[-1]).strip("-.")[-80:] or "file"
    if plain.lower() in ("config.json", "pasted.json"):
        return f"{_model_type(content)}.json"
    return plain if plain[0].isalnum() and plain.isascii() else f"file-{plain.encode('ascii', 'ignore').decode()}"


def _model_type(content: bytes) -> str:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        return "pasted"
    kind = found.get("model_type") if isinstance(found, Mapping) else None
    return f"my-{kind}" if isinstance(kind, str) and re.fullmatch(r"[A-Za-z0-9_-]{1,40}", kind) else "pasted"
