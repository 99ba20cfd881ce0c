"""From a checkpoint to a decoder: weights read, checked, fused and converted one layer at a time."""

from __future__ import annotations

import torch
from torch import Tensor

from servewise.engine.checkpoint import Checkpoint
from servewise.engine.config import DecoderConfig
from servewise.engine.decoder.decoder import Decoder, Layer
from servewise.engine.decoder.linear import Linear, LinearMaker, dense, norm_weight
from servewise.errors import InputError

DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)


class Weights:
    """A checkpoint's weights with their shapes checked, in one dtype on one device."""

    def __init__(self, checkpoint: Checkpoint, dtype: torch.dtype, device: torch.device) -> None:
        self._checkpoint, self._dtype, self._device = checkpoint, dtype, device

    def get(self, name: str, *shape: int) -> Tensor:
        """The weight ``name``; raises InputError where it is missing or has another shape."""
        weight = self._checkpoint.weight(name)
        if tuple(weight.shape) != shape:
            raise InputError(
                f"{name} has shape {tuple(weight.shape)}, and {shape} by the config",
                where=str(self._checkpoint.path),
                hint="config.json and weights are not of one model",
            )
        return weight.to(device=self._device, dtype=self._dtype)

    def norm(self, name: str, width: int) -> Tensor:
        """A norm's weight, in float32 at least."""
        return norm_weight(self.get(name, width))

    def stacked(self, names: tuple[str, ...], rows: tuple[int, ...], *rest: int) -> Tensor:
        """Several weights stacked by rows into one."""
        return torch.cat([self.get(name, count, *rest) for name, count in zip(names, rows, strict=True)])


def load_decoder(
    checkpoint: Checkpoint,
    *,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
    linear: LinearMaker = dense,
) -> Decoder:
    """The checkpoint's decoder, computing in ``dtype`` on ``device``; ``linear`` makes its products.

    Raises InputError for a missing weight, a wrong shape, or a dtype or device that cannot be used.
    """
    if dtype not in DTYPES:
        raise InputError(f"a decoder cannot compute in {dtype}", hint="float64, float32, bfloat16 or float16")
    config, weights = checkpoint.config, Weights(checkpoint, dtype, _usable(device))
    embedding_VE = weights.get("model.embed_tokens.weight", config.vocabulary, config.hidden)
    head = embedding_VE if config.tied else weights.get("lm_head.weight", config.vocabulary, config.hidden)
    return Decoder(
        config,
        embedding_VE=embedding_VE,
        layers=[_layer(config, weights, f"model.layers.{index}.", linear) for index in range(config.layers)],
        final_norm=weights.norm("model.norm.weight", config.hidden),
        head=linear("lm_head", head, None),
    )


def _usable(device: torch.device | str) -> torch.device:
    try:
        torch.empty(0, device=device)
        return torch.device(device)
    except (RuntimeError, AssertionError) as error:
        raise InputError(f"no device {str(device)!r} here ({str(error).splitlines()[0]})") from None


def _layer(config: DecoderConfig, weights: Weights, prefix: str, linear: LinearMaker) -> Layer:
    hidden, inner, width = config.hidden, config.intermediate, config.heads * config.head_dim
    rows = (width, config.kv_heads * config.head_dim, config.kv_heads * config.head_dim)

    def product(name: str, parts: tuple[str, ...], rows: tuple[int, ...], inputs: int, bias: bool) -> Linear:
        weight = weights.stacked(tuple(f"{prefix}{each}.weight" for each in parts), rows, inputs)
        added = weights.stacked(tuple(f"{prefix}{each}.bias" for each in parts), rows) if bias else None
        return linear(prefix + name, weight, added)

    attention, mlp = "self_attn.", "mlp."
    qkv = tuple(f"{attention}{each}_proj" for each in "qkv")
    return Layer(
        attention_norm=weights.norm(prefix + "input_layernorm.weight", hidden),
        qkv=product(attention + "qkv_proj", qkv, rows, hidden, config.qkv_bias),
        output=product(attention + "o_proj", (attention + "o_proj",), (hidden,), width, config.output_bias),
        mlp_norm=weights.norm(prefix + "post_attention_layernorm.weight", hidden),
        gate_up=product(
            mlp + "gate_up_proj", (mlp + "gate_proj", mlp + "up_proj"), (inner, inner), hidden, config.mlp_bias
        ),
        down=product(mlp + "down_proj", (mlp + "down_proj",), (hidden,), inner, config.mlp_bias),
        q_norm=weights.norm(prefix + attention + "q_norm.weight", config.head_dim) if config.qk_norm else None,
        k_norm=weights.norm(prefix + attention + "k_norm.weight", config.head_dim) if config.qk_norm else None,
    )
