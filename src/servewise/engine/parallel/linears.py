"""Products of which each rank holds a part. Legend: T tokens, I inputs, O outputs."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor

from servewise.engine.config import DecoderConfig
from servewise.engine.decoder.linear import Linear, LinearMaker, dense
from servewise.engine.parallel.share import Share, part

Group = dist.ProcessGroup | None
"""The ranks that share a model; None: all."""


class SummedLinear:
    """A product whose inputs are split: each rank has some of the columns, the parts are added (all-reduce)."""

    def __init__(self, product: Linear, group: Group) -> None:
        self._product, self._group = product, group

    def __call__(self, x_TI: Tensor) -> Tensor:
        """(T, O), the same on every rank."""
        y_TO = self._product(x_TI)
        dist.all_reduce(y_TO, group=self._group)
        return y_TO


class GatheredLinear:
    """A product whose outputs are split, side by side again on every rank (all-gather)."""

    def __init__(self, product: Linear, outputs: int, group: Group) -> None:
        self._product, self._group = product, group
        ranks = dist.get_world_size(group)
        self._widths = [len(part(outputs, rank, ranks)) for rank in range(ranks)]
        self._widest = self._widths[0]

    def __call__(self, x_TI: Tensor) -> Tensor:
        """(T, O), the same on every rank."""
        y_TO = self._product(x_TI)
        padded = torch.nn.functional.pad(y_TO, (0, self._widest - y_TO.shape[1])).contiguous()
        parts = [torch.empty_like(padded) for _ in self._widths]
        dist.all_gather(parts, padded, group=self._group)
        return torch.cat([each[:, :width] for each, width in zip(parts, self._widths, strict=True)], 1)


def split_linears(config: DecoderConfig, share: Share, group: Group, inner: LinearMaker = dense) -> LinearMaker:
    """The maker of a rank's products: it takes whole weights and keeps ``share`` of each, made by ``inner``."""

    def maker(name: str, weight_OI: Tensor, bias_O: Tensor | None) -> Linear:
        """The rank's part of the product ``name``: rows of what is stacked or looked up, else columns, to be summed."""
        kind = name.rpartition(".")[2]
        if kind in ("qkv_proj", "gate_up_proj"):
            rows = qkv_rows(config, share) if kind == "qkv_proj" else gate_up_rows(config, share)
            return inner(name, weight_OI[rows], None if bias_O is None else bias_O[rows])
        if kind == "lm_head":
            kept = slice(share.vocabulary.start, share.vocabulary.stop)
            return GatheredLinear(inner(name, weight_OI[kept].clone(), None), config.vocabulary, group)
        size = config.head_dim
        wanted = share.inner
        if kind == "o_proj":
            wanted = range(share.heads.start * size, share.heads.stop * size)
        columns = weight_OI[:, wanted.start : wanted.stop].clone()
        return SummedLinear(inner(name, columns, bias_O if share.rank == 0 else None), group)

    return maker


def qkv_rows(config: DecoderConfig, share: Share) -> Tensor:
    """The rows of the stacked q, k and v weights that belong to the share's heads."""
    q, kv = config.heads, config.kv_heads
    heads = [*share.heads, *(q + each for each in share.kv_heads), *(q + kv + each for each in share.kv_heads)]
    within = torch.arange(config.head_dim)
    return (torch.tensor(heads)[:, None] * config.head_dim + within).flatten()


def gate_up_rows(config: DecoderConfig, share: Share) -> Tensor:
    """The rows of the stacked gate and up weights that belong to the share."""
    gate = torch.arange(share.inner.start, share.inner.stop)
    return torch.cat((gate, gate + config.intermediate))
