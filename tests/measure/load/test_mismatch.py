"""Lengths asked for against lengths counted."""

from __future__ import annotations

import pytest
from tests.measure.exchanges import exchange

from servewise.measure.load.mismatch import prompt_mismatch


def test_mismatch_by_hand() -> None:
    """Asked 10 each, counted 10, 12 and 9: mean 31 / 3, worst +2; what the server did not count is left out."""
    counted = [exchange(serial=at, prompt_tokens=tokens, counted_by="usage") for at, tokens in enumerate((10, 12, 9))]
    found = prompt_mismatch([*counted, exchange(serial=3), exchange(serial=4, prompt_tokens=99, counted_by="events")])
    assert found is not None
    assert (found.requests, found.worst_tokens) == (3, 2)
    assert found.ratio == pytest.approx(31 / 30)
    assert [caveat.code for caveat in found.caveats] == ["prompt-lengths-differ"]


def test_exact_lengths_have_no_caveat() -> None:
    """Nor has a run whose server counts nothing."""
    found = prompt_mismatch([exchange(prompt_tokens=10, counted_by="usage")])
    assert found is not None
    assert found.caveats == ()
    assert prompt_mismatch([exchange()]) is None
