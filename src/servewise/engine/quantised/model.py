"""A decoder with fewer bits: the same network with other products, or with another cache."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from servewise.engine.config import DecoderConfig
from servewise.engine.decoder.decoder import Decoder, Layer
from servewise.engine.decoder.linear import DenseLinear, Linear, LinearMaker
from servewise.engine.quantised.cache import QuantisedCache
from servewise.engine.quantised.gptq import compensated
from servewise.engine.quantised.matrix import QuantisedMatrix, round_to_nearest
from servewise.engine.quantised.moments import Moments
from servewise.engine.quantised.products import RoundedInputs, emulated, packed
from servewise.engine.quantised.scheme import KvScheme, Scheme
from servewise.engine.step import KvCache, Model, StepInput
from servewise.errors import InputError

HEAD = "lm_head"
PRODUCTS = {
    "self_attn.qkv_proj": "qkv",
    "self_attn.o_proj": "output",
    "mlp.gate_up_proj": "gate_up",
    "mlp.down_proj": "down",
}


def quantise(decoder: Decoder, scheme: Scheme, moments: Moments | None = None) -> Decoder:
    """``decoder`` by ``scheme``; it shares what is not quantised. GPTQ needs ``moments`` (``moments_of``).

    Raises InputError where moments are missing or ``decoder`` is quantised already.
    """
    maker = linear_maker(scheme, moments)

    def remade(name: str, product: Linear) -> Linear:
        if not isinstance(product, DenseLinear):
            raise InputError(f"{name} is no plain matrix", hint="quantise the model as it was loaded")
        return maker(name, product.weight_OI, product.bias_O)

    embedding_VE = decoder.embedding_VE
    if scheme.tables and scheme.weights is not None:
        embedding_VE = round_to_nearest(embedding_VE, scheme.weights).dense()
    return _with_products(decoder, remade, embedding_VE)


def linear_maker(scheme: Scheme, moments: Moments | None = None) -> LinearMaker:
    """The maker of a scheme's products, for ``load_decoder``: dense weights are let go one by one."""

    def maker(name: str, weight_OI: Tensor, bias_O: Tensor | None) -> Linear:
        if name == HEAD and not scheme.tables:
            return DenseLinear(weight_OI, bias_O)
        if scheme.weights is None:
            plain = DenseLinear(weight_OI, bias_O)
            return RoundedInputs(plain) if scheme.activations else plain
        matrix = _matrix(name, weight_OI, scheme, moments)
        made = packed(matrix, weight_OI.dtype, bias_O, activations=scheme.activations) if scheme.packed else None
        if made is not None:
            return made
        dense = emulated(matrix, weight_OI.dtype, bias_O)
        return RoundedInputs(dense) if scheme.activations else dense

    return maker


def _matrix(name: str, weight_OI: Tensor, scheme: Scheme, moments: Moments | None) -> QuantisedMatrix:
    assert scheme.weights is not None
    exact_OI = weight_OI if weight_OI.dtype == torch.float64 else weight_OI.float()
    if scheme.method is None or name == HEAD:
        return round_to_nearest(exact_OI, scheme.weights)
    if moments is None or name not in moments:
        raise InputError(f"no second moments for {name}", where="gptq", hint="run moments_of on a calibration text")
    return compensated(exact_OI, moments.of(name), scheme.weights, scheme.method)


def moments_of(decoder: Decoder, run: Callable[[Model], object]) -> Moments:
    """The second moments of every product's inputs while ``run`` computes a calibration text with the model it gets."""
    moments = Moments()
    run(_with_products(decoder, moments.listening, decoder.embedding_VE, head=False))
    return moments


def products_of(decoder: Decoder) -> Iterator[tuple[str, Linear]]:
    """The decoder's products with their names, the output table last."""
    for index, layer in enumerate(decoder.layers):
        for name, field in PRODUCTS.items():
            yield f"model.layers.{index}.{name}", getattr(layer, field)
    yield HEAD, decoder.head


def _with_products(
    decoder: Decoder, remade: Callable[[str, Linear], Linear], embedding_VE: Tensor, *, head: bool = True
) -> Decoder:
    def layer(index: int, old: Layer) -> Layer:
        new: dict[str, Any] = {
            field: remade(f"model.layers.{index}.{name}", getattr(old, field)) for name, field in PRODUCTS.items()
        }
        return replace(old, **new)

    layers: Sequence[Layer] = [layer(index, old) for index, old in enumerate(decoder.layers)]
    return Decoder(
        decoder.config,
        embedding_VE=embedding_VE,
        layers=layers,
        final_norm=decoder.final_norm,
        head=remade(HEAD, decoder.head) if head else decoder.head,
        heads=decoder.heads,
        kv_heads=decoder.kv_heads,
    )


class QuantisedKv:
    """A model whose new caches are quantised; it satisfies the ``Model`` seam."""

    def __init__(self, decoder: Decoder, scheme: KvScheme) -> None:
        self._decoder, self._scheme = decoder, scheme

    @property
    def config(self) -> DecoderConfig:
        """Sizes and switches."""
        return self._decoder.config

    def new_cache(self, blocks: int, block_tokens: int = 16) -> QuantisedCache:
        """An empty cache by the scheme."""
        decoder = self._decoder
        return QuantisedCache(
            decoder.config,
            self._scheme,
            blocks,
            block_tokens,
            dtype=decoder.dtype,
            device=decoder.device,
            kv_heads=decoder.kv_heads,
        )

    def step(self, step: StepInput, cache: KvCache) -> Tensor:
        """Logits, (R, V), as the decoder gives them."""
        return self._decoder.step(step, cache)
