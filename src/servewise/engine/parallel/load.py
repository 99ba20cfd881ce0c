"""A decoder of which each rank of a process group holds its share."""

from __future__ import annotations

import torch
import torch.distributed as dist

from servewise.engine.checkpoint import Checkpoint
from servewise.engine.decoder.decoder import Decoder
from servewise.engine.decoder.linear import LinearMaker, dense
from servewise.engine.decoder.load import load_decoder
from servewise.engine.parallel.linears import Group, split_linears
from servewise.engine.parallel.share import share_of


def load_parallel_decoder(
    checkpoint: Checkpoint,
    *,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
    group: Group = None,
    linear: LinearMaker = dense,
) -> Decoder:
    """This rank's share of the decoder; every rank calls it, and then ``step`` with the same steps.

    The weights are read one layer at a time, so that no rank holds all of them. Logits come out whole on every rank.
    ``group`` (None: all ranks) is of the backend that suits the device: gloo on CPUs, nccl on CUDA.
    """
    config = checkpoint.config
    share = share_of(config, dist.get_rank(group), dist.get_world_size(group))
    part = load_decoder(checkpoint, dtype=dtype, device=device, linear=split_linears(config, share, group, linear))
    return Decoder(
        config,
        embedding_VE=part.embedding_VE,
        layers=part.layers,
        final_norm=part.final_norm,
        head=part.head,
        heads=len(share.heads),
        kv_heads=len(share.kv_heads),
    )
