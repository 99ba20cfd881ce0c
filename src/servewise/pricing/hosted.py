"""What hosted models cost by the token, for comparison with serving a model oneself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from servewise.errors import UnknownName
from servewise.pricing.price import PRICES_FILE, source_of
from servewise.tables import Unit, as_number, as_table, as_text, needs, only, read_toml

USD_PER_MILLION = Unit("USD/million tokens", 0, 1e5, "3.0 is $3 a million tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class HostedPrice:
    """A hosted model's price [USD per million tokens] and the name of its prompt cache's terms.

    ``cached_input_usd_per_million`` is what a token read from the cache costs, None where only the terms say it.
    """

    name: str
    input_usd_per_million: float
    output_usd_per_million: float
    cache: str
    source: str
    date: str
    cached_input_usd_per_million: float | None = None


@cache
def hosted_prices() -> Mapping[str, HostedPrice]:
    """The hosted models' prices that ship with the package, by model."""
    tables, where = read_toml(PRICES_FILE), PRICES_FILE.name
    return {name: _hosted(name, each, tables["sources"], f"{where}: {name}") for name, each in tables["hosted"].items()}


def find_hosted(name: str) -> HostedPrice:
    """The price of that hosted model; UnknownName with the nearest names."""
    prices = hosted_prices()
    if name not in prices:
        raise UnknownName("hosted model", name, prices, hint="give --price")
    return prices[name]


def _hosted(name: str, value: Any, sources: Mapping[str, Any], where: str) -> HostedPrice:
    table = as_table(value, where)
    only(table, ("input", "output", "cached_input", "cache", "source"), where)
    needs(table, ("input", "output", "cache", "source"), where)
    source, date = source_of(sources[as_text(table["source"], where)], where)
    cached = table.get("cached_input")
    return HostedPrice(
        name=name,
        input_usd_per_million=as_number(table["input"], USD_PER_MILLION, f"{where}: input"),
        output_usd_per_million=as_number(table["output"], USD_PER_MILLION, f"{where}: output"),
        cache=as_text(table["cache"], f"{where}: cache"),
        source=source,
        date=date,
        cached_input_usd_per_million=None if cached is None else as_number(cached, USD_PER_MILLION, where),
    )
