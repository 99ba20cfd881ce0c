"""The decoder and one step of it.

Legend: T new tokens, R rows whose logits are wanted, V vocabulary, E hidden size, H heads, K KV heads, D head size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional

from servewise.engine.cache.paged import PagedCache
from servewise.engine.config import DecoderConfig
from servewise.engine.decoder.attention import Group, attend, groups_of
from servewise.engine.decoder.linear import Linear, rms_norm, silu_times
from servewise.engine.decoder.rope import RopeTable, rotate
from servewise.engine.step import KvCache, StepInput
from servewise.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One layer's norms and products. ``qkv`` gives queries, keys and values side by side, ``gate_up`` both halves."""

    attention_norm: Tensor
    qkv: Linear
    output: Linear
    mlp_norm: Tensor
    gate_up: Linear
    down: Linear
    q_norm: Tensor | None = None
    k_norm: Tensor | None = None


class Decoder:
    """A decoder of the Llama family; it satisfies the ``Model`` seam.

    In 16 bits the sum that runs through the layers and the norms are float32: as fast, and nearer to the exact logits.
    ``heads`` and ``kv_heads`` are its share of the config's where it is one of several ranks.
    """

    def __init__(
        self,
        config: DecoderConfig,
        *,
        embedding_VE: Tensor,
        layers: Sequence[Layer],
        final_norm: Tensor,
        head: Linear,
        heads: int | None = None,
        kv_heads: int | None = None,
    ) -> None:
        self._config = config
        self.embedding_VE, self.layers, self.final_norm, self.head = embedding_VE, tuple(layers), final_norm, head
        self.heads, self.kv_heads = heads or config.heads, kv_heads or config.kv_heads
        self.rope = RopeTable(config.rope, self.dtype, self.device)

    @property
    def config(self) -> DecoderConfig:
        """Sizes and switches."""
        return self._config

    @property
    def dtype(self) -> torch.dtype:
        """What it computes in."""
        return self.embedding_VE.dtype

    @property
    def device(self) -> torch.device:
        """Where it computes."""
        return self.embedding_VE.device

    def new_cache(self, blocks: int, block_tokens: int = 16) -> PagedCache:
        """An empty cache in the model's dtype, on its device, for its share of the heads."""
        return PagedCache(
            self._config, blocks, block_tokens, dtype=self.dtype, device=self.device, kv_heads=self.kv_heads
        )

    def first_layers(self, layers: int) -> Decoder:
        """The same model cut after ``layers`` layers (early exit), sharing the weights."""
        if not 1 <= layers <= len(self.layers):
            raise InputError(f"{layers} layers of a model that has {len(self.layers)}")
        return Decoder(
            replace(self._config, layers=layers),
            embedding_VE=self.embedding_VE,
            layers=self.layers[:layers],
            final_norm=self.final_norm,
            head=self.head,
            heads=self.heads,
            kv_heads=self.kv_heads,
        )

    @torch.inference_mode()
    def step(self, step: StepInput, cache: KvCache) -> Tensor:
        """Logits, (R, V) in float32 (float64 in a float64 model); the new tokens are in the cache then.

        Raises InputError where a sequence is longer than the model's context.
        """
        self.check(step)
        cos, sin = self.rope.at(step.positions_T, max(step.context_tokens, default=0))
        groups = groups_of(step, cache, self._config.window_tokens)
        x_TE = functional.embedding(step.tokens_T, self.embedding_VE).to(self.final_norm.dtype)
        for index, layer in enumerate(self.layers):
            x_TE = x_TE + self._attention(index, layer, x_TE, cos, sin, step, groups, cache)
            if index == len(self.layers) - 1:
                x_TE = x_TE[step.rows_R]
            x_TE = x_TE + self._mlp(layer, x_TE)
        logits_RV = self.head(self._norm(x_TE, self.final_norm))
        return logits_RV if logits_RV.dtype == torch.float64 else logits_RV.float()

    def check(self, step: StepInput) -> None:
        """Raise InputError where a sequence of the step is longer than the model's context."""
        most = max(step.context_tokens, default=0)
        if most > self._config.max_context_tokens:
            raise InputError(
                f"a sequence of {most} tokens, where the context is {self._config.max_context_tokens}",
                where=self._config.name,
                hint="shorten the prompt or the reply",
            )

    def _attention(
        self,
        index: int,
        layer: Layer,
        x_TE: Tensor,
        cos: Tensor,
        sin: Tensor,
        step: StepInput,
        groups: list[Group],
        cache: KvCache,
    ) -> Tensor:
        heads, turned = self.heads, self.heads + self.kv_heads
        qkv_TO = layer.qkv(self._norm(x_TE, layer.attention_norm))
        qkv_THD = qkv_TO.view(len(x_TE), turned + self.kv_heads, -1)
        qk_THD = rotate(self._normed(layer, qkv_THD[:, :turned]), cos, sin)
        cache.write(index, step.slots_T, qk_THD[:, heads:], qkv_THD[:, turned:])
        return layer.output(attend(qk_THD[:, :heads], groups, cache, index).flatten(1))

    def _normed(self, layer: Layer, qk_THD: Tensor) -> Tensor:
        if layer.q_norm is None or layer.k_norm is None:
            return qk_THD
        q, k = qk_THD[:, : self.heads], qk_THD[:, self.heads :]
        return torch.cat((self._norm(q, layer.q_norm), self._norm(k, layer.k_norm)), 1)

    def _norm(self, x: Tensor, weight: Tensor) -> Tensor:
        return rms_norm(x, weight, self._config.norm_epsilon, self.dtype)

    def _mlp(self, layer: Layer, x_TE: Tensor) -> Tensor:
        return layer.down(silu_times(layer.gate_up(self._norm(x_TE, layer.mlp_norm))))


def rows_not_finite(logits_RV: Tensor) -> list[int]:
    """The rows with a logit that is no finite number: those sequences alone have failed, the others may go on.

    Their blocks must be cleared (``PagedCache.clear``) before another sequence gets them.
    """
    broken = ~torch.isfinite(logits_RV.sum(1))
    if not broken.any():
        return []
    return [row for row in broken.nonzero().flatten().tolist() if not torch.isfinite(logits_RV[row]).all()]
