"""The tiny transformer computes what its formulas say, and a cache never changes it."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servewise.errors import InputError
from servewise.study.generation import generate_with_cache, generate_without_cache
from servewise.study.transformer import (
    KvCache,
    Transformer,
    TransformerConfig,
    forward,
    gelu,
    norm,
    random_transformer,
    rotate,
    softmax,
)

Positions = Literal["learned", "rope"]


@st.composite
def configs(draw: st.DrawFn) -> TransformerConfig:
    """Small transformers of every kind."""
    kv_heads, share, width = draw(st.integers(1, 3)), draw(st.integers(1, 3)), 2 * draw(st.integers(1, 4))
    return TransformerConfig(
        vocab=draw(st.integers(2, 30)),
        hidden=kv_heads * share * width,
        layers=draw(st.integers(1, 3)),
        heads=kv_heads * share,
        kv_heads=kv_heads,
        feed_forward=draw(st.integers(1, 40)),
        max_tokens=32,
        positions=draw(st.sampled_from(("learned", "rope"))),
        score_deviation=draw(st.floats(0.1, 4)),
        bigram=draw(st.floats(0, 1)),
    )


@settings(max_examples=60, deadline=None)
@given(configs(), st.integers(0, 2**32), st.lists(st.integers(1, 6), min_size=1, max_size=5), st.data())
def test_cut_into_pieces_gives_the_logits_of_the_whole(
    config: TransformerConfig, seed: int, pieces: list[int], data: st.DataObject
) -> None:
    """Any prompt fed through a cache in any pieces gives the logits of one pass, to float64 rounding."""
    model = random_transformer(config, seed)
    count = sum(pieces)
    tokens = np.array(data.draw(st.lists(st.integers(0, config.vocab - 1), min_size=count, max_size=count)))
    cache = KvCache.empty(config)
    parts = [forward(model, part, cache) for part in np.split(tokens, np.cumsum(pieces)[:-1])]
    whole = forward(model, tokens, KvCache.empty(config))
    np.testing.assert_allclose(np.concatenate(parts), whole, rtol=0, atol=1e-12)
    assert cache.positions_processed == cache.length == count


@settings(max_examples=40, deadline=None)
@given(configs(), st.integers(0, 2**32), st.data())
def test_cached_generation_equals_uncached(config: TransformerConfig, seed: int, data: st.DataObject) -> None:
    """Greedy tokens with and without cache are equal up to the first near-tie, which rounding may decide."""
    model = random_transformer(config, seed)
    prompt = data.draw(st.lists(st.integers(0, config.vocab - 1), min_size=1, max_size=8))
    plain, cached = generate_without_cache(model, prompt, 12), generate_with_cache(model, prompt, 12)
    best_two = np.partition(plain.logits, -2, axis=-1)[:, -2:]
    clear = int(np.argmin(np.append(best_two[:, 1] - best_two[:, 0] > 1e-9, False)))
    assert plain.tokens[:clear] == cached.tokens[:clear]
    np.testing.assert_allclose(plain.logits[:clear], cached.logits[:clear], rtol=0, atol=1e-12)
    assert plain.positions == sum(range(len(prompt), len(prompt) + 12))
    assert cached.positions == len(prompt) + 12


@settings(max_examples=30, deadline=None)
@given(configs(), st.integers(0, 2**32), st.integers(1, 11))
def test_no_position_sees_a_later_one(config: TransformerConfig, seed: int, changed: int) -> None:
    """Changing a token changes no logit before it (causality), and changes its own."""
    model = random_transformer(config, seed)
    tokens = np.random.default_rng(seed).integers(0, config.vocab, 12)
    other = tokens.copy()
    other[changed] = (tokens[changed] + 1) % config.vocab
    first, second = (forward(model, each, KvCache.empty(config)) for each in (tokens, other))
    np.testing.assert_allclose(first[:changed], second[:changed], rtol=0, atol=1e-13)
    assert np.max(np.abs(first[changed] - second[changed])) > 1e-9


def plain_attention_forward(model: Transformer, tokens: list[int]) -> list[list[float]]:
    """The same network with learned positions written out again with loops, from the published formulas."""
    config, width = model.config, model.config.head_width
    assert model.positions is not None
    rows = [model.embedding[token] + model.positions[place] for place, token in enumerate(tokens)]
    for block in model.blocks:
        normed = [row / np.sqrt(np.mean(row**2) + 1e-6) for row in rows]
        mixed = []
        for place in range(len(rows)):
            heads = []
            for head in range(config.heads):
                q = slice(head * width, (head + 1) * width)
                shared = head // (config.heads // config.kv_heads)
                kv = slice(shared * width, (shared + 1) * width)
                query = (normed[place] @ block.query)[q]
                seen = normed[: place + 1]
                scores = np.array([query @ (each @ block.key)[kv] for each in seen]) / np.sqrt(width)
                chances = np.exp(scores) / np.sum(np.exp(scores))
                heads.append(sum(p * (each @ block.value)[kv] for p, each in zip(chances, seen, strict=True)))
            mixed.append(np.concatenate(heads) @ block.output)
        rows = [row + each for row, each in zip(rows, mixed, strict=True)]
        normed = [row / np.sqrt(np.mean(row**2) + 1e-6) for row in rows]
        rows = [row + gelu(each @ block.up) @ block.down for row, each in zip(rows, normed, strict=True)]
    return [list((row / np.sqrt(np.mean(row**2) + 1e-6)) @ model.head) for row in rows]


def test_forward_is_the_network_written_out_with_loops() -> None:
    """The vectorised pass equals an independent one with explicit loops over positions and heads."""
    config = TransformerConfig(vocab=11, hidden=12, layers=2, heads=6, kv_heads=3, feed_forward=20)
    model = random_transformer(config, 5)
    tokens = [3, 1, 4, 1, 5, 9, 2, 6]
    ours = forward(model, np.array(tokens), KvCache.empty(config))
    np.testing.assert_allclose(ours, plain_attention_forward(model, tokens), rtol=0, atol=1e-12)


@given(st.integers(0, 500), st.integers(0, 500), st.integers(0, 10**6))
def test_rope_sees_only_distances(first: int, second: int, seed: int) -> None:
    """A rotated query-key product depends on the distance of the two positions alone (Su et al. 2021, eq. 11)."""
    rng = np.random.default_rng(seed)
    query, key = rng.normal(size=(2, 1, 1, 8))
    shift = 37

    def score(at_query: int, at_key: int) -> float:
        turned = rotate(query, np.array([at_query])), rotate(key, np.array([at_key]))
        return float(np.sum(turned[0] * turned[1]))

    assert score(first, second) == pytest.approx(score(first + shift, second + shift), abs=1e-11)


def test_softmax_and_norm_have_their_defining_properties() -> None:
    """Softmax sums to 1 and ignores a shift; RMSNorm gives unit mean square; GELU(0) = 0 and GELU(x) -> x."""
    x = np.random.default_rng(0).normal(size=(3, 7)) * 50
    np.testing.assert_allclose(softmax(x).sum(axis=-1), 1)
    np.testing.assert_allclose(softmax(x + 1000), softmax(x))
    np.testing.assert_allclose(np.mean(norm(x, np.ones(7)) ** 2, axis=-1), 1, rtol=1e-6)
    assert gelu(np.array([0.0, 10.0])).tolist() == [0.0, 10.0]


@pytest.mark.parametrize("changes", [{"heads": 3}, {"kv_heads": 3}, {"layers": 0}, {"bigram": 1.5}])
def test_impossible_shapes_are_refused(changes: dict[str, float]) -> None:
    """A config whose heads do not divide, or with a size below 1, is an InputError."""
    with pytest.raises(InputError):
        replace(TransformerConfig(), **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("tokens", [[], [64], [-1], [0] * 257])
def test_impossible_tokens_are_refused(tokens: list[int]) -> None:
    """No tokens, tokens outside the vocabulary, or more than the model holds: an InputError."""
    model = random_transformer(TransformerConfig(), 0)
    with pytest.raises(InputError):
        forward(model, np.array(tokens, dtype=np.int64), KvCache.empty(model.config))
