"""Terms of hosted prompt caches: what writing and reading cost, from which length, for how long."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from servewise.errors import InputError, UnknownName
from servewise.tables import Unit, as_number, as_table, as_text, needs, only, read_toml

TERMS_FILE = Path(__file__).with_name("cache_terms.toml")
MULTIPLIER = Unit("times the input price", 0, 100, "0.1 is a tenth of the input price")
TOKENS = Unit("tokens", 0, 1e9, "1024")
SECONDS = Unit("s", 1e-3, 1e9, "300 is five minutes")
NEEDED = ("write", "read")
OPTIONAL = ("title", "min_tokens", "minimums", "granularity_tokens", "ttl_s", "refreshed", "source", "date", "notes")


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheTerms:
    """A prompt cache as its bill sees it.

    ``write_multiplier`` and ``read_multiplier`` are times the price of an input token. A prompt under ``min_tokens``
    (``minimums`` by model) is not cached; cached lengths are whole steps of ``granularity_tokens``. Entries live
    ``ttl_s`` (None: nothing is promised), counted from the last use where ``refreshed``.
    """

    name: str
    title: str
    write_multiplier: float
    read_multiplier: float
    min_tokens: int = 0
    minimums: Mapping[str, int] = field(default_factory=dict)
    granularity_tokens: int = 1
    ttl_s: float | None = None
    refreshed: bool = True
    source: str = "given by the user"
    date: str = ""
    notes: str = ""

    def cacheable_tokens(self, prefix_tokens: int, model: str | None = None) -> int:
        """How many of ``prefix_tokens`` are cached: none under the minimum, else whole steps.

        >>> find_terms("openai-gpt-5").cacheable_tokens(1500)
        1408
        """
        least = self.min_tokens if model is None else self.minimums.get(model, self.min_tokens)
        return 0 if prefix_tokens < least else prefix_tokens - prefix_tokens % self.granularity_tokens


def cache_terms(path: str | None = None) -> Mapping[str, CacheTerms]:
    """The terms that ship with the package by name, or those of a user's TOML file of the same form."""
    return _shipped() if path is None else _read(Path(path))


def find_terms(name: str, path: str | None = None) -> CacheTerms:
    """The terms of that name; UnknownName with the nearest names.

    >>> find_terms("anthropic-5m").write_multiplier
    1.25
    """
    terms = cache_terms(path)
    if name not in terms:
        raise UnknownName("prompt cache", name, terms, hint=f"one of {', '.join(terms)}")
    return terms[name]


@cache
def _shipped() -> Mapping[str, CacheTerms]:
    return _read(TERMS_FILE)


def _read(path: Path) -> dict[str, CacheTerms]:
    return {name: _terms(name, table, f"{path}: {name}") for name, table in read_toml(path).items()}


def _terms(name: str, value: Any, where: str) -> CacheTerms:
    table = as_table(value, where)
    only(table, (*NEEDED, *OPTIONAL), where)
    needs(table, NEEDED, where)
    minimums = as_table(table.get("minimums", {}), f"{where}: minimums")
    granularity = _whole(table.get("granularity_tokens", 1), f"{where}: granularity_tokens")
    if granularity < 1:
        raise InputError("must be at least 1", where=f"{where}: granularity_tokens")
    refreshed = table.get("refreshed", True)
    if not isinstance(refreshed, bool):
        raise InputError("must be true or false", where=f"{where}: refreshed")
    texts = {key: as_text(table.get(key, ""), f"{where}: {key}") for key in ("title", "source", "date", "notes")}
    return CacheTerms(
        name=name,
        title=texts["title"] or name,
        write_multiplier=as_number(table["write"], MULTIPLIER, f"{where}: write"),
        read_multiplier=as_number(table["read"], MULTIPLIER, f"{where}: read"),
        min_tokens=_whole(table.get("min_tokens", 0), f"{where}: min_tokens"),
        minimums={model: _whole(tokens, f"{where}: minimums: {model}") for model, tokens in minimums.items()},
        granularity_tokens=granularity,
        ttl_s=as_number(table["ttl_s"], SECONDS, f"{where}: ttl_s") if "ttl_s" in table else None,
        refreshed=refreshed,
        source=texts["source"] or f"file {where}",
        date=texts["date"],
        notes=texts["notes"],
    )


def _whole(value: Any, where: str) -> int:
    number = as_number(value, TOKENS, where)
    if number != int(number):
        raise InputError(f"must be a whole number, not {value!r}", where=where)
    return int(number)
