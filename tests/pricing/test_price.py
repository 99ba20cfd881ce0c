"""Prices: quoted with source and date, the user's own first, never guessed."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from servewise.errors import InputError
from servewise.hardware.catalogue import catalogue
from servewise.pricing.cache_terms import cache_terms
from servewise.pricing.hosted import hosted_prices
from servewise.pricing.price import PRICES_FILE, accelerator_price, stated_price
from servewise.tables import read_toml

LISTED = sorted(read_toml(PRICES_FILE)["accelerators"])


@pytest.mark.parametrize("name", LISTED)
def test_every_price_is_a_quote_of_a_known_accelerator(name: str) -> None:
    """Each listed name is in the catalogue, and its price is a quote with address and date, within its range."""
    price = accelerator_price(name)
    assert name in catalogue()
    assert price is not None
    assert price.standing == "quoted"
    assert price.source.startswith("https://")
    assert price.date.startswith("2026")
    assert price.low_usd_per_hour <= price.usd_per_hour <= price.high_usd_per_hour
    assert price.reserved_usd_per_hour is None or price.reserved_usd_per_hour < price.high_usd_per_hour


def test_h100_is_the_lower_median_of_its_quotes() -> None:
    """Of eight H100 quotes (2.60 to 12.29) the fourth cheapest counts: Hyperstack's 3.20 of 2026-08-26."""
    price = accelerator_price("h100-sxm")
    assert price is not None
    assert (price.usd_per_hour, price.low_usd_per_hour, price.high_usd_per_hour) == (3.20, 2.60, 12.29)
    assert "hyperstack" in price.source
    assert price.reserved_usd_per_hour == 2.72


def test_unknown_price_is_none() -> None:
    """An accelerator that nobody quoted has no price."""
    assert accelerator_price("tpu-v6e") is None
    assert accelerator_price("no-such-card") is None


def test_own_file_wins(tmp_path: Path) -> None:
    """A user's file of plain numbers overrides the shipped quote, and leaves the others as shipped."""
    path = tmp_path / "prices.toml"
    path.write_text("h100-sxm = 2.75\nour-card = 1\n")
    price = accelerator_price("h100-sxm", str(path))
    assert price is not None
    assert (price.usd_per_hour, price.standing) == (2.75, "assumed")
    assert accelerator_price("our-card", str(path)) is not None
    assert accelerator_price("l40s", str(path)) == accelerator_price("l40s")


def test_own_file_in_full_form(tmp_path: Path) -> None:
    """The shipped form works in a user's file too, with quotes and sources of its own."""
    path = tmp_path / "prices.toml"
    path.write_text(
        '[sources]\nours = { at = "contract 7", date = "2026-11-01" }\n'
        '[accelerators]\nh200 = { on_demand = [[4.0, "ours"], [3.0, "ours"]], reserved = [[2.5, "ours"]] }\n'
    )
    price = accelerator_price("h200", str(path))
    assert price is not None
    assert (price.usd_per_hour, price.source, price.reserved_usd_per_hour) == (3.0, "contract 7", 2.5)


def test_hours_and_counts() -> None:
    """Two dollars an hour for four accelerators and half an hour is four dollars."""
    assert stated_price(2.0).usd(4, 1800) == 4.0


@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf"), 1e9, "2", None, True])
def test_absurd_stated_price_is_refused(value: object) -> None:
    """A price that is no positive, plausible number is refused in one line."""
    with pytest.raises(InputError, match="--price"):
        stated_price(value)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("h100-sxm = -2", "out of range"),
        ("h100-sxm = 'two'", "must be a number"),
        ("h100-sxm = { spot = 1 }", "unknown key 'spot'"),
        ("h100-sxm = { on_demand = [] }", "at least one quote"),
        ("h100-sxm = { on_demand = [[1]] }", "a quote is"),
        ("h100-sxm = { on_demand = [[1, 'x']] }", "unknown source"),
        ("[accelerators]\nh100-sxm = 1\n[other]", "unknown key 'other'"),
        ("h100-sxm = ", "is not TOML"),
    ],
)
def test_wrong_price_file_is_one_clear_line(tmp_path: Path, text: str, told: str) -> None:
    """A wrong file names itself, the place and the mistake."""
    path = tmp_path / "prices.toml"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        accelerator_price("h100-sxm", str(path))
    assert told in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(alphabet='ab1-.=[]{}"\n #', max_size=40))
def test_any_text_is_prices_or_refused(tmp_path: Path, text: str) -> None:
    """Whatever stands in a price file, the answer is a price, None or InputError."""
    path = tmp_path / "prices.toml"
    path.write_text(text)
    try:
        price = accelerator_price("a", str(path))
    except InputError:
        return
    assert price is None or price.usd_per_hour > 0


@pytest.mark.parametrize("name", sorted(hosted_prices()))
def test_hosted_prices_name_their_source_and_cache(name: str) -> None:
    """A hosted price has an address, a date and known cache terms; output costs more than input, cached input less."""
    price = hosted_prices()[name]
    assert price.source.startswith("https://")
    assert price.date.startswith("2026")
    assert price.cache in cache_terms()
    assert price.output_usd_per_million > price.input_usd_per_million
    assert (price.cached_input_usd_per_million or 0) < price.input_usd_per_million
