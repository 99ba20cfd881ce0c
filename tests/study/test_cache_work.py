"""The study's first table: what a KV cache saves, and that it changes nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from servewise.study.cache_work import PROMPT, ROUNDING_LIMIT, cache_work_table, tokens_equal
from servewise.study.generation import generate_with_cache, generate_without_cache
from servewise.study.quantise import to_float16
from servewise.study.row import StudyTable
from servewise.study.transformer import KvCache, TransformerConfig, forward, random_transformer


@pytest.fixture(scope="module")
def table() -> StudyTable:
    """The table, computed once."""
    return cache_work_table()


@pytest.mark.parametrize(("tokens", "positions"), [(20, 290), (40, 980), (80, 3560), (160, 13520)])
def test_positions_without_cache(table: StudyTable, tokens: int, positions: int) -> None:
    """Without a cache the positions are the study's, and 5 + 6 + ... + (N + 4) by hand."""
    (row,) = table.select("positions, no cache", tokens=tokens)
    assert row.ours == positions == sum(range(5, 5 + tokens))


@pytest.mark.parametrize(("tokens", "positions"), [(20, 25), (40, 45), (80, 85), (160, 165)])
def test_positions_with_cache(table: StudyTable, tokens: int, positions: int) -> None:
    """With a cache the positions are the study's: the prompt once, then each token once."""
    (row,) = table.select("positions, cache", tokens=tokens)
    assert row.ours == positions == 5 + tokens


@pytest.mark.parametrize(("tokens", "study"), [(20, 4e-15), (40, 5e-15), (80, 7e-15), (160, 7e-15)])
def test_logits_differ_by_rounding_only(table: StudyTable, tokens: int, study: float) -> None:
    """The largest logit difference is float64 rounding, of the study's order of magnitude."""
    (row,) = table.select("max logit difference", tokens=tokens)
    assert row.ours <= 10 * study < ROUNDING_LIMIT
    assert row.agrees


@pytest.mark.parametrize("tokens", [20, 40, 80, 160])
def test_both_runs_choose_the_same_tokens(table: StudyTable, tokens: int) -> None:
    """Greedy tokens are equal with and without cache, and no tie decided it."""
    (row,) = table.select("tokens equal", tokens=tokens)
    assert row.agrees


def test_a_tie_is_no_equality() -> None:
    """Where all logits are equal, equal tokens prove nothing, and the row says so."""
    model = random_transformer(TransformerConfig(), 0)
    flat = replace(model, head=np.zeros_like(model.head))
    plain, cached = generate_without_cache(flat, PROMPT, 5), generate_with_cache(flat, PROMPT, 5)
    assert plain.tokens == cached.tokens
    assert plain.margin == 0
    assert not tokens_equal(plain, cached)


def test_the_rounding_limit_tells_a_float16_cache_apart() -> None:
    """A cache kept in float16 moves logits a million times further than the limit for float64 rounding allows."""
    model = random_transformer(TransformerConfig(), 0)
    exact, rounded = KvCache.empty(model.config), KvCache.empty(model.config, to_float16)
    tokens = np.array(PROMPT)
    assert np.max(np.abs(forward(model, tokens, exact) - forward(model, tokens, rounded))) > 1e6 * ROUNDING_LIMIT


def test_wall_time_is_not_judged(table: StudyTable) -> None:
    """Wall time depends on the machine: it is shown, with no verdict."""
    assert [row.agrees for row in table.select("wall time, cache")] == [None]
