"""What an accelerator costs by the hour: dated quotes that ship with the package, or the user's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from servewise.errors import InputError, UnknownName
from servewise.tables import Unit, as_list, as_number, as_table, as_text, needs, only, read_toml

PRICES_FILE = Path(__file__).with_name("prices.toml")
USD_PER_HOUR = Unit("USD/hour", 1e-4, 1e5, "2.75 is $2.75 an accelerator-hour")
Standing = Literal["quoted", "assumed"]


@dataclass(frozen=True, slots=True)
class Quote:
    """A price somebody printed [USD per accelerator-hour], where and when it was read."""

    usd_per_hour: float
    source: str
    date: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """What an accelerator costs [USD per hour].

    ``usd_per_hour`` is the lower median of the on-demand quotes, with that quote's ``source`` and ``date``; ``low``
    and ``high`` are the cheapest and the dearest of them; ``reserved_usd_per_hour`` the cheapest under a contract, None
    where there is no quote. ``standing``: ``quoted`` (read at a source) or ``assumed`` (stated by the user).
    """

    usd_per_hour: float
    source: str
    date: str
    standing: Standing
    low_usd_per_hour: float
    high_usd_per_hour: float
    reserved_usd_per_hour: float | None = None

    def usd(self, accelerators: float, seconds: float) -> float:
        """Dollars for ``accelerators`` during ``seconds``."""
        return self.usd_per_hour * accelerators * seconds / 3600


def accelerator_price(name: str, path: str | None = None) -> Price | None:
    """The price of the accelerator of that catalogue name, None where none is known: a price is never guessed.

    ``path`` is a user's TOML file, which wins over the shipped quotes: ``h100-sxm = 2.75`` or the shipped file's form.
    Raises InputError for a file that is wrong.

    >>> accelerator_price("gaudi-3") is None
    True
    """
    own = _prices(Path(path), shipped=False) if path is not None else {}
    return own.get(name) or _shipped().get(name)


def stated_price(usd_per_hour: float, where: str = "--price") -> Price:
    """The price that a user states as a plain number [USD per accelerator-hour].

    >>> stated_price(2.0).usd(4, 1800)
    4.0
    """
    return _stated(as_number(usd_per_hour, USD_PER_HOUR, where), "given by the user")


@cache
def _shipped() -> Mapping[str, Price]:
    return _prices(PRICES_FILE, shipped=True)


def _prices(path: Path, *, shipped: bool) -> dict[str, Price]:
    tables, where = read_toml(path), str(path)
    if shipped or "accelerators" in tables:
        only(tables, ("sources", "accelerators", "hosted"), where)
        listed = as_table(tables.get("accelerators", {}), f"{where}: accelerators")
        sources = as_table(tables.get("sources", {}), f"{where}: sources")
    else:
        listed, sources = tables, {}
    return {name: _price(value, sources, f"{where}: {name}") for name, value in listed.items()}


def _price(value: Any, sources: Mapping[str, Any], where: str) -> Price:
    if not isinstance(value, Mapping):
        return _stated(as_number(value, USD_PER_HOUR, where), f"file {where}")
    only(value, ("on_demand", "reserved"), where)
    needs(value, ("on_demand",), where)
    on_demand = _quotes(value["on_demand"], sources, f"{where}: on_demand")
    reserved = _quotes(value.get("reserved", []), sources, f"{where}: reserved")
    if not on_demand:
        raise InputError("needs at least one quote", where=f"{where}: on_demand", hint='e.g. [[2.75, "our contract"]]')
    middle = on_demand[(len(on_demand) - 1) // 2]
    return Price(
        usd_per_hour=middle.usd_per_hour,
        source=middle.source,
        date=middle.date,
        standing="quoted",
        low_usd_per_hour=on_demand[0].usd_per_hour,
        high_usd_per_hour=on_demand[-1].usd_per_hour,
        reserved_usd_per_hour=reserved[0].usd_per_hour if reserved else None,
    )


def _quotes(value: Any, sources: Mapping[str, Any], where: str) -> list[Quote]:
    """The quotes of one list, the cheapest first."""
    quotes = [_quote(each, sources, where) for each in as_list(value, where)]
    return sorted(quotes, key=lambda quote: quote.usd_per_hour)


def _quote(value: Any, sources: Mapping[str, Any], where: str) -> Quote:
    pair = as_list(value, where)
    if len(pair) != 2:
        raise InputError("a quote is [usd per hour, source]", where=where)
    key = as_text(pair[1], where)
    if key not in sources:
        raise UnknownName("source", key, sources, where=where, hint="list it under [sources]")
    source, date = source_of(sources[key], f"{where}: {key}")
    return Quote(as_number(pair[0], USD_PER_HOUR, where), source, date)


def source_of(value: Any, where: str) -> tuple[str, str]:
    """The address (with its note) and the date of one entry under [sources]."""
    table = as_table(value, where)
    only(table, ("at", "date", "note"), where)
    needs(table, ("at", "date"), where)
    at, date, note = (as_text(table.get(key, ""), f"{where}: {key}") for key in ("at", "date", "note"))
    return (f"{at} ({note})" if note else at), date


def _stated(usd_per_hour: float, source: str) -> Price:
    return Price(
        usd_per_hour=usd_per_hour,
        source=source,
        date="",
        standing="assumed",
        low_usd_per_hour=usd_per_hour,
        high_usd_per_hour=usd_per_hour,
    )
