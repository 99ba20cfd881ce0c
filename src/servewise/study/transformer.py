"""A decoder-only transformer in NumPy (float64), small enough to read: what a server computes, with its KV cache.

Pre-norm blocks (RMSNorm), grouped-query attention, a GELU feed-forward, learned positions or RoPE. There is one code
path: without a cache every pass starts from an empty one.

Shapes: T new tokens, S tokens held (new ones too), H query heads, G KV heads, E head width, D hidden, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from servewise.errors import InputError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Store = Callable[[Floats], Floats]
"""What is done to keys and values before they are kept: nothing, or rounding to fewer bits."""

EPSILON = 1e-6
ROPE_BASE = 10_000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformerConfig:
    """The shape of the model. ``hidden`` must divide by ``heads``, ``heads`` by ``kv_heads``; RoPE needs even heads.

    The last three say in what the random model resembles a trained one. ``score_deviation`` and ``logit_deviation``
    make attention and predictions sharp: at 1 and 1, a plain random initialisation, both are near uniform.
    ``bigram`` is the correlation of the head with the embedding of the token before, in a ring: what a trained head
    knows of which token follows which, so that some predictions are confident. At 3, 2 and 0.5 a prediction has an
    entropy of 2.1 nats (perplexity 8).
    """

    vocab: int = 64
    hidden: int = 64
    layers: int = 2
    heads: int = 4
    kv_heads: int = 4
    feed_forward: int = 256
    max_tokens: int = 256
    positions: Literal["learned", "rope"] = "learned"
    score_deviation: float = 3.0
    logit_deviation: float = 2.0
    bigram: float = 0.5

    def __post_init__(self) -> None:
        sizes = (self.vocab, self.hidden, self.layers, self.heads, self.kv_heads, self.feed_forward, self.max_tokens)
        if min(sizes) < 1:
            raise InputError("every size of the transformer must be at least 1", where="TransformerConfig")
        if self.hidden % self.heads or self.heads % self.kv_heads:
            raise InputError("hidden must divide by heads, heads by kv_heads", where="TransformerConfig")
        if self.positions == "rope" and self.head_width % 2:
            raise InputError("RoPE turns pairs: hidden / heads must be even", where="TransformerConfig")
        if not 0 <= self.bigram <= 1:
            raise InputError(f"bigram must be from 0 to 1, not {self.bigram!r}", where="TransformerConfig")

    @property
    def head_width(self) -> int:
        """Width of one head (E)."""
        return self.hidden // self.heads


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """The matrices of one layer, stored [in, out], and the gains of its two norms."""

    query: Floats
    key: Floats
    value: Floats
    output: Floats
    up: Floats
    down: Floats
    attention_norm: Floats
    feed_forward_norm: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Transformer:
    """Config and weights. ``positions`` [max_tokens, D] is None under RoPE."""

    config: TransformerConfig
    embedding: Floats
    positions: Floats | None
    blocks: tuple[Block, ...]
    final_norm: Floats
    head: Floats


def random_transformer(config: TransformerConfig, seed: int) -> Transformer:
    """Random weights: deviation 1/sqrt(fan-in), residual outputs divided by sqrt(2 x layers) (Radford et al. 2019).

    Norms feed every matrix vectors of unit mean square, so that scores and logits have deviations of 1, times those
    that the config asks for.
    """
    rng = np.random.default_rng(seed)
    learned = config.positions == "learned"
    embedding = rng.normal(size=(config.vocab, config.hidden))
    return Transformer(
        config=config,
        embedding=embedding,
        positions=rng.normal(size=(config.max_tokens, config.hidden)) if learned else None,
        blocks=tuple(_random_block(config, rng) for _ in range(config.layers)),
        final_norm=np.ones(config.hidden),
        head=_random_head(config, embedding, rng),
    )


def _random_head(config: TransformerConfig, embedding: Floats, rng: np.random.Generator) -> Floats:
    before = np.roll(embedding, 1, axis=0).T / math.sqrt(config.hidden)
    own = _matrix(rng, config.hidden, config.vocab)
    return config.logit_deviation * (config.bigram * before + math.sqrt(1 - config.bigram**2) * own)


def _random_block(config: TransformerConfig, rng: np.random.Generator) -> Block:
    residual = 1 / math.sqrt(2 * config.layers)
    kv_width = config.kv_heads * config.head_width
    return Block(
        query=_matrix(rng, config.hidden, config.hidden) * config.score_deviation,
        key=_matrix(rng, config.hidden, kv_width),
        value=_matrix(rng, config.hidden, kv_width),
        output=_matrix(rng, config.hidden, config.hidden) * residual,
        up=_matrix(rng, config.hidden, config.feed_forward),
        down=_matrix(rng, config.feed_forward, config.hidden) * residual,
        attention_norm=np.ones(config.hidden),
        feed_forward_norm=np.ones(config.hidden),
    )


def _matrix(rng: np.random.Generator, fan_in: int, fan_out: int) -> Floats:
    return rng.normal(0.0, 1 / math.sqrt(fan_in), (fan_in, fan_out))


def as_kept(values: Floats) -> Floats:
    """Keys and values kept as they are."""
    return values


@dataclass(slots=True)
class KvCache:
    """Keys and values of the ``length`` tokens seen, [layers, G, max_tokens, E] each; ``store`` acts on what comes in.

    ``positions_processed`` counts the positions that went through a layer stack with this cache.
    """

    keys: Floats
    values: Floats
    length: int = 0
    positions_processed: int = 0
    store: Store = field(default=as_kept)

    @classmethod
    def empty(cls, config: TransformerConfig, store: Store = as_kept) -> KvCache:
        """A cache for up to ``max_tokens`` tokens."""
        shape = (config.layers, config.kv_heads, config.max_tokens, config.head_width)
        return cls(np.zeros(shape), np.zeros(shape), store=store)

    def append(self, layer: int, keys_GTE: Floats, values_GTE: Floats) -> tuple[Floats, Floats]:
        """Keep the new keys and values of a layer; give back all that it holds [G, S, E]."""
        end = self.length + keys_GTE.shape[1]
        self.keys[layer, :, self.length : end] = self.store(keys_GTE)
        self.values[layer, :, self.length : end] = self.store(values_GTE)
        return self.keys[layer, :, :end], self.values[layer, :, :end]


def forward(model: Transformer, tokens_T: Ints, cache: KvCache) -> Floats:
    """Logits [T, V] of the new tokens, which follow those that ``cache`` holds and join them.

    Raises InputError where a token is outside the vocabulary or the cache would overflow.
    """
    config = model.config
    end = cache.length + len(tokens_T)
    if not len(tokens_T) or end > config.max_tokens:
        raise InputError(f"{end} tokens do not fit the {config.max_tokens} of the model", where="forward")
    if tokens_T.min() < 0 or tokens_T.max() >= config.vocab:
        raise InputError(f"tokens must be from 0 to {config.vocab - 1}", where="forward")
    position_T = np.arange(cache.length, end)
    x_TD = model.embedding[tokens_T]
    if model.positions is not None:
        x_TD = x_TD + model.positions[position_T]
    for layer, block in enumerate(model.blocks):
        x_TD = x_TD + attend(config, block, norm(x_TD, block.attention_norm), position_T, cache, layer)
        x_TD = x_TD + gelu(norm(x_TD, block.feed_forward_norm) @ block.up) @ block.down
    cache.length = end
    cache.positions_processed += x_TD.shape[0]
    return norm(x_TD, model.final_norm) @ model.head


def attend(
    config: TransformerConfig, block: Block, x_TD: Floats, position_T: Ints, cache: KvCache, layer: int
) -> Floats:
    """Causal attention of the new tokens over all that the cache holds, themselves included [T, D]."""
    query_HTE = split_heads(x_TD @ block.query, config.heads)
    key_GTE = split_heads(x_TD @ block.key, config.kv_heads)
    value_GTE = split_heads(x_TD @ block.value, config.kv_heads)
    if config.positions == "rope":
        query_HTE, key_GTE = rotate(query_HTE, position_T), rotate(key_GTE, position_T)
    keys_GSE, values_GSE = cache.append(layer, key_GTE, value_GTE)
    share = config.heads // config.kv_heads
    score_HTS = query_HTE @ np.repeat(keys_GSE, share, axis=0).swapaxes(1, 2) / math.sqrt(config.head_width)
    later_TS = np.arange(keys_GSE.shape[1]) > position_T[:, None]
    weight_HTS = softmax(np.where(later_TS, -np.inf, score_HTS))
    mixed_HTE = weight_HTS @ np.repeat(values_GSE, share, axis=0)
    return mixed_HTE.swapaxes(0, 1).reshape(len(position_T), config.hidden) @ block.output


def split_heads(x_TD: Floats, heads: int) -> Floats:
    """[T, heads x E] as [heads, T, E]."""
    return x_TD.reshape(x_TD.shape[0], heads, -1).swapaxes(0, 1)


def rotate(x_HTE: Floats, position_T: Ints) -> Floats:
    """Rotary positions (Su et al. 2021, eq. 34): pair (i, i + E/2) turned by position x base^(-2i/E)."""
    half = x_HTE.shape[-1] // 2
    angle_TE = position_T[:, None] * ROPE_BASE ** (-np.arange(half) / half)
    cos, sin = np.cos(angle_TE), np.sin(angle_TE)
    first, second = x_HTE[..., :half], x_HTE[..., half:]
    return np.concatenate((first * cos - second * sin, first * sin + second * cos), axis=-1)


def norm(x_TD: Floats, gain_D: Floats) -> Floats:
    """RMSNorm (Zhang and Sennrich 2019): x / sqrt(mean(x^2)) x gain."""
    root: Floats = np.sqrt(np.mean(np.square(x_TD), axis=-1, keepdims=True) + EPSILON)
    return x_TD / root * gain_D


def gelu(x: Floats) -> Floats:
    """GELU, tanh form (Hendrycks and Gimpel 2016)."""
    inner: Floats = np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))
    return 0.5 * x * (1 + inner)


def softmax(x: Floats) -> Floats:
    """Softmax over the last axis."""
    raised: Floats = np.exp(x - x.max(axis=-1, keepdims=True))
    shares: Floats = raised / raised.sum(axis=-1, keepdims=True)
    return shares
