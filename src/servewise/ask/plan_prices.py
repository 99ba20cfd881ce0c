"""Dollars per accelerator-hour for a plan: the shipped quotes, under the user's own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from servewise.errors import UnknownName
from servewise.hardware.accelerator import Accelerator
from servewise.pricing.price import accelerator_price, stated_price

Prices = str | Path | Mapping[str, float] | None


def prices_of(chips: Iterable[Accelerator], prices: Prices) -> dict[str, float]:
    """Of those that have a price; ``prices`` is a TOML file or dollars by name, over the shipped quotes."""
    if isinstance(prices, Mapping):
        names = [each.name for each in chips]
        unknown = [name for name in prices if name not in names]
        if unknown:
            raise UnknownName("accelerator", unknown[0], names, where="prices", hint=f"one of {', '.join(names)}")
        own = {name: stated_price(value, f"price of {name}").usd_per_hour for name, value in prices.items()}
        return prices_of([each for each in chips if each.name not in own], None) | own
    path = None if prices is None else str(prices)
    found = {each.name: accelerator_price(each.name, path) for each in chips}
    return {name: price.usd_per_hour for name, price in found.items() if price is not None}
