"""Secrets within what a server says, and within the address that is shown."""

from __future__ import annotations

import pytest

from servewise.measure.addressing import target_of
from servewise.measure.hiding import hidden, secrets_of, shown_address

KEY = "sk-0123456789"


@pytest.mark.parametrize("kept", range(6, len(KEY) + 1))
def test_no_beginning_of_a_key_stays_at_a_cut(kept: int) -> None:
    """However many letters a cut leaves of it, from six on."""
    assert hidden(f"bad key {KEY[:kept]}…", (KEY,)) == "bad key (hidden)…"


def test_common_words_are_no_secrets() -> None:
    """A header's short words stay, so that reasons can be read; the scheme before a credential stays too."""
    target = target_of("http://host", model="m", headers=(("X-Team", "blue"), ("Authorization", "Basic dXNlcjpwYXNz")))
    assert secrets_of(target) == ("dXNlcjpwYXNz",)


def test_the_address_keeps_the_names_of_its_query_alone() -> None:
    """Azure's api-version shows as a name, a signature does not show."""
    target = target_of("https://host/v1?api-version=1&sig=abc", model="m")
    assert shown_address(target) == "https://host:443/v1/chat/completions?api-version=(hidden)&sig=(hidden)"
    assert shown_address(target_of("http://host", model="m")) == "http://host:80/v1/chat/completions"
