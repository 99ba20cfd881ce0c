"""What both writers need: a place that is taken whole or not at all, and numbers that the new format can hold."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor

from servewise.atomic import settle, settle_all
from servewise.errors import InputError

DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}


@contextmanager
def written_whole(target: Path) -> Iterator[Path]:
    """A path beside ``target`` to write a file or folder at; it is moved there at the end, or removed on an error.

    What is there is on the disk: after a power cut it is whole or not there.

    Raises InputError where ``target`` is there already or its folder cannot be made or written to.
    """
    if target.exists() or target.is_symlink():
        raise InputError("is there already", where=str(target), hint="name a new place; nothing is overwritten")
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        yield part
        if target.exists():
            raise InputError("came to be while it was written", where=str(target), hint="name a new place")
        settle_all(part)
        part.rename(target)
        settle(target.parent)
    except OSError as error:
        raise InputError(f"cannot be written ({error.strerror or error})", where=str(target)) from None
    finally:
        if part.is_dir():
            shutil.rmtree(part, ignore_errors=True)
        else:
            part.unlink(missing_ok=True)


def cast(name: str, weight: Tensor, dtype: torch.dtype) -> Tensor:
    """``weight`` rounded to ``dtype``; raises InputError where a finite number would become infinite."""
    found = weight.to(dtype).contiguous()
    if dtype is torch.float16 and bool((found.isinf() & weight.isfinite()).any()):
        raise InputError("holds numbers over 65,504, the largest of f16", where=name, hint="write bf16 or f32")
    return found
