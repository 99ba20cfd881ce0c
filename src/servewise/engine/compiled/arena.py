"""Memory in huge pages: weights and caches are read from end to end each step, and small pages cost a fifth of that."""

from __future__ import annotations

import mmap

import torch
from torch import Tensor

PAGE = 2**21
CHUNK = 64 * 2**20  # what is not handed out is never touched, and takes no memory
LINE = 64


class Arena:
    """Hands out tensors of zeros, 64-byte aligned, from large pieces; a piece lives as long as a tensor in it does."""

    def __init__(self) -> None:
        self._left = torch.empty(0, dtype=torch.uint8)

    def zeros(self, *shape: int, dtype: torch.dtype) -> Tensor:
        """A tensor of zeros. Raises OSError where there is no memory for it."""
        size = dtype.itemsize
        for each in shape:
            size *= each
        taken = -(-size // LINE) * LINE
        if taken > len(self._left):
            self._left = _piece(max(CHUNK, -(-taken // PAGE) * PAGE))
        found, self._left = self._left[:size], self._left[taken:]
        return found.view(dtype).view(shape)


def _piece(size: int) -> Tensor:
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        memory.madvise(mmap.MADV_HUGEPAGE)
    return torch.frombuffer(memory, dtype=torch.uint8)
