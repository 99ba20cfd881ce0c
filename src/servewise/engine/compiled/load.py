"""A decoder by the kernels that suit this machine: the compiled ones where they can be had, else PyTorch's."""

from __future__ import annotations

from ctypes import CDLL
from typing import NamedTuple

import torch
from torch import Tensor

from servewise.engine.checkpoint import Checkpoint
from servewise.engine.compiled.arena import Arena
from servewise.engine.compiled.decoder import CompiledDecoder, misfit
from servewise.engine.compiled.library import NATIVE, Unavailable, instructions, kernels
from servewise.engine.compiled.linear import PackedLinear
from servewise.engine.decoder.decoder import Decoder
from servewise.engine.decoder.linear import Linear
from servewise.engine.decoder.load import load_decoder
from servewise.errors import InputError, UnknownName

KERNELS = ("auto", "torch", "compiled")


class Loaded(NamedTuple):
    """A model and what computes it, in words: ``compiled kernels, AMX-BF16``, or ``PyTorch (why)``."""

    model: Decoder | CompiledDecoder
    kernels: str


def load_model(
    checkpoint: Checkpoint,
    *,
    dtype: torch.dtype = torch.bfloat16,
    device: torch.device | str = "cpu",
    kernels: str = "auto",
) -> Loaded:
    """The checkpoint's decoder by ``kernels``: ``torch``, ``compiled``, or ``auto``, the compiled ones where they can.

    They compute bfloat16 on x86-64 CPUs and are built at first use, which takes seconds. Raises InputError as
    ``load_decoder`` does, and where ``compiled`` cannot be had; UnknownName for another word.
    """
    if kernels not in KERNELS:
        raise UnknownName("kernels", kernels, KERNELS, where="kernels", hint=f"one of {', '.join(KERNELS)}")
    if kernels == "torch":
        return Loaded(load_decoder(checkpoint, dtype=dtype, device=device), "PyTorch (asked for)")
    try:
        return load_compiled(checkpoint, dtype=dtype, device=device)
    except Unavailable as why:
        if kernels == "compiled":
            raise InputError(str(why), where="compiled kernels", hint="--kernels auto or torch") from why
        return Loaded(load_decoder(checkpoint, dtype=dtype, device=device), f"PyTorch ({why})")


def load_compiled(
    checkpoint: Checkpoint,
    *,
    dtype: torch.dtype = torch.bfloat16,
    device: torch.device | str = "cpu",
    target: str = NATIVE,
) -> Loaded:
    """The checkpoint by kernels compiled for ``target``; raises Unavailable where it cannot be."""
    if dtype != torch.bfloat16 or torch.device(device).type != "cpu":
        raise Unavailable(f"compiled kernels compute bfloat16 on a CPU, not {_short(dtype)} on {device}")
    why = misfit(checkpoint.config)
    if why is not None:
        raise Unavailable(why)
    library = kernels(target)
    decoder = load_decoder(checkpoint, dtype=dtype, linear=_Maker(library))
    return Loaded(CompiledDecoder(decoder, library), f"compiled kernels, {instructions(target)}")


class _Maker:
    """Makes packed products, side by side in memory."""

    def __init__(self, library: CDLL) -> None:
        self._library, self._arena = library, Arena()

    def __call__(self, name: str, weight_OI: Tensor, bias_O: Tensor | None) -> Linear:
        del name
        return PackedLinear(self._library, self._arena, weight_OI, bias_O)


def _short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
