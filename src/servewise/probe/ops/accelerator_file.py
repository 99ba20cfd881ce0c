"""This machine as an accelerator file, which ``--accelerator FILE`` reads: measured memory, bandwidth and peaks."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from servewise.probe.ops.machine import Machine
from servewise.probe.ops.operation import DTYPES


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A number and, in words, how it was measured and how far its samples spread."""

    value: float
    note: str


def accelerator_toml(
    machine: Machine, bandwidth: Measured, peaks: Mapping[str, Measured], *, date: str, software: str
) -> str:
    """The file's text. ``peaks`` go by PyTorch's dtype names; ``date`` and ``software`` say when and with what.

    Each number has a source of its own, standing ``measured``, whose note tells shape and spread.
    """
    sources = {"memory": "as the system reports it", "bandwidth": bandwidth.note}
    sources |= {f"peak-{dtype}": each.note for dtype, each in peaks.items()}
    numbers = ", ".join(
        f'{DTYPES[dtype][1]} = [{_number(each.value)}, "peak-{dtype}"]' for dtype, each in peaks.items()
    )
    lines = [
        f"name = {_text(slug(machine.title))}",
        f"title = {_text(str(machine))}",
        f'memory = [{machine.memory_bytes}, "memory"]',
        f'bandwidth = [{_number(bandwidth.value)}, "bandwidth"]',
        f"peaks = {{ {numbers} }}",
        'notes = "Reached by PyTorch on this machine, not the chip\'s nominal figures."',
        "",
        "[sources]",
    ]
    at = _text(f"servewise probe ops, {software}")
    lines += [
        f'{name} = {{ at = {at}, date = {_text(date)}, standing = "measured", note = {_text(note)} }}'
        for name, note in sources.items()
    ]
    return "\n".join(lines) + "\n"


def slug(title: str) -> str:
    """A name for files and tables.

    >>> slug("AMD EPYC 9R14 (virtual)")
    'amd-epyc-9r14-virtual'
    """
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "machine"


def _number(value: float) -> str:
    return f"{value:.4e}".replace("e+", "e")


def _text(words: str) -> str:
    return json.dumps(words, ensure_ascii=False)  # TOML's basic strings take JSON's escapes
