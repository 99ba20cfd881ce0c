"""The decoder whose steps are one call into the compiled kernels.

Legend: T new tokens, R rows whose logits are wanted, V vocabulary.
"""

from __future__ import annotations

from array import array
from ctypes import CDLL, byref
from itertools import accumulate, chain
from typing import Any

import torch
from torch import Tensor

from servewise.engine.compiled.cache import PackedCache
from servewise.engine.compiled.linear import STEP, PackedLinear
from servewise.engine.compiled.structures import LayerStructure, ModelStructure, ProductStructure, StepStructure
from servewise.engine.config import DecoderConfig
from servewise.engine.decoder.decoder import Decoder, Layer
from servewise.engine.decoder.linear import Linear
from servewise.engine.decoder.rope import RopeTable
from servewise.engine.step import KvCache, StepInput


class CompiledDecoder:
    """``decoder``, made of packed products, in bfloat16 on a CPU; it satisfies the ``Model`` seam.

    Its steps are the decoder's with fewer roundings: queries, keys and values as projected, the SwiGLU's halves, angles
    and logits are float32. A row's logits are the same bits whatever is computed beside it, however its prompt was cut.
    On a cache that is not its own, the decoder itself computes.
    """

    def __init__(self, decoder: Decoder, library: CDLL) -> None:
        self._decoder, self._library = decoder, library
        self._rope = RopeTable(decoder.config.rope, torch.float32, torch.device("cpu"))
        self._layers = (LayerStructure * len(decoder.layers))(*map(_layer, decoder.layers))
        self._model = _model(decoder, self._layers)

    @property
    def config(self) -> DecoderConfig:
        """Sizes and switches."""
        return self._decoder.config

    @property
    def dtype(self) -> torch.dtype:
        """What it computes in."""
        return self._decoder.dtype

    @property
    def device(self) -> torch.device:
        """Where it computes."""
        return self._decoder.device

    def new_cache(self, blocks: int, block_tokens: int = 16) -> PackedCache:
        """An empty cache."""
        return PackedCache(self.config, blocks, block_tokens)

    def first_layers(self, layers: int) -> CompiledDecoder:
        """The same model cut after ``layers`` layers (early exit), sharing the weights."""
        return CompiledDecoder(self._decoder.first_layers(layers), self._library)

    @torch.inference_mode()
    def step(self, step: StepInput, cache: KvCache) -> Tensor:
        """Logits, (R, V) in float32; the new tokens are in the cache then.

        Raises InputError where a sequence is longer than the model's context, IndexError where the step names a token,
        slot, block or row that is not there.
        """
        if not isinstance(cache, PackedCache):
            return self._decoder.step(step, cache)
        self._decoder.check(step)
        cos, sin = self._rope.at(step.positions_T, max(step.context_tokens, default=0))
        arrays = _arrays(step)
        starts, contexts, table_starts, tables = (each.buffer_info()[0] for each in arrays)
        asked = StepStructure(
            step.tokens_T.data_ptr(),
            step.slots_T.data_ptr(),
            starts,
            contexts,
            table_starts,
            step.rows_R.data_ptr(),
            tables,
            cos.data_ptr(),
            sin.data_ptr(),
            len(step.tokens_T),
            len(step.context_tokens),
            len(step.rows_R),
            cache.block_tokens,
            cache.blocks,
        )
        threads = torch.get_num_threads()
        room = torch.empty(self._library.servewise_room(byref(self._model), byref(asked), threads), dtype=torch.uint8)
        logits_RV = torch.empty(len(step.rows_R), self.config.vocabulary)
        if not self._library.servewise_step(
            byref(self._model), cache.structures, byref(asked), room.data_ptr(), logits_RV.data_ptr(), threads
        ):
            raise IndexError("the step names a token, slot, block or row that is not there")
        return logits_RV


def misfit(config: DecoderConfig) -> str | None:
    """Why the kernels do not compute this model; None: they do."""
    sizes = {
        "hidden size": config.hidden,
        "query width": config.heads * config.head_dim,
        "intermediate size": config.intermediate,
    }
    odd = [f"{name} {size}" for name, size in sizes.items() if size % STEP]
    if odd:
        return f"{', '.join(odd)}: not a multiple of {STEP}"
    return f"head size {config.head_dim}: not a multiple of 16" if config.head_dim % 16 else None


def _arrays(step: StepInput) -> tuple[array[int], ...]:
    """Query starts, contexts, table starts, and the tables back to back in 32 bits."""
    tables = step.block_tables
    return (
        array("q", step.query_starts),
        array("q", step.context_tokens),
        array("q", accumulate(map(len, tables), initial=0)),
        array("i", chain.from_iterable(tables)),
    )


def _product(linear: Linear) -> ProductStructure:
    assert isinstance(linear, PackedLinear), "a compiled decoder is made of packed products"
    return linear.structure


def _layer(layer: Layer) -> LayerStructure:
    return LayerStructure(
        layer.attention_norm.data_ptr(),
        layer.mlp_norm.data_ptr(),
        layer.q_norm.data_ptr() if layer.q_norm is not None else None,
        layer.k_norm.data_ptr() if layer.k_norm is not None else None,
        *map(_product, (layer.qkv, layer.output, layer.gate_up, layer.down)),
    )


def _model(decoder: Decoder, layers: Any) -> ModelStructure:
    config = decoder.config
    return ModelStructure(
        decoder.embedding_VE.data_ptr(),
        layers,
        decoder.final_norm.data_ptr(),
        _product(decoder.head),
        len(decoder.layers),
        config.hidden,
        config.heads,
        config.kv_heads,
        config.head_dim,
        config.intermediate,
        config.vocabulary,
        config.rope.dimensions,
        config.window_tokens or 0,
        config.norm_epsilon,
    )
