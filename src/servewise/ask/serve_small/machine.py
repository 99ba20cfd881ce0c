"""What the machine had to give around each run: its memory's bandwidth, and how busy others kept its cores.

On a machine that is shared, neighbours can halve either; a row that was measured then is told by these two figures.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from servewise.probe.ops.gemms import gemm_operations
from servewise.probe.ops.machine import Machine
from servewise.probe.ops.streams import PIECE_BYTES, stream_operations
from servewise.probe.ops.timing import sample, timing_of
from servewise.units import MIB

WORKING_SET_BYTES = 256 * MIB  # beyond the caches of one socket's share
PATIENCE_S = 0.2
LOOK_S = 0.4
PROC = Path("/proc")
BUSY_SHARE, SLOW_SHARE = 0.1, 0.75
SIDE = 1024


class Gauge:
    """Reads the machine while the server idles."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._read: Callable[[], object] | None = None

    def read(self, server: int | None = None) -> dict[str, Any]:
        """``bandwidth_bytes_per_s`` of reading memory, and ``others_share`` of all cores' time (None: not known).

        ``server``: the process whose own time, and that of all that it started, is not others'.
        """
        others = others_share(but=server)
        if self._read is None:
            first = next(stream_operations([WORKING_SET_BYTES], (), self._machine.device))
            self._read = first.prepare()
        timing = timing_of(sample(self._read, self._machine, 5, PATIENCE_S))
        return {"bandwidth_bytes_per_s": PIECE_BYTES / timing.median_s, "others_share": others}


def peak_flops_per_s(machine: Machine) -> float:
    """The rate of a matrix product in 16 bits [FLOP/s]."""
    (product,) = gemm_operations((SIDE,), ("bfloat16",), machine.device)
    return product.flops / timing_of(sample(product.prepare(), machine, 5, PATIENCE_S)).median_s


def others_share(look_s: float = LOOK_S, *, but: int | None = None, proc: Path = PROC) -> float | None:
    """The share of all cores' time that is taken while this program sleeps, stolen time of a virtual machine included.

    ``but``: a process that does not count, with all that it started (the idle server). Linux's /proc/stat, first line:
    user, nice, system, idle, iowait, irq, softirq, steal (proc(5)).
    """
    before, own_before = _times(proc), _ticks_of(but, proc)
    time.sleep(look_s)
    after, own_after = _times(proc), _ticks_of(but, proc)
    if before is None or after is None:
        return None
    spent = [late - early for early, late in zip(before, after, strict=True)]
    whole, own = sum(spent), max(own_after - own_before, 0)
    return max(1 - (spent[3] + spent[4] + own) / whole, 0.0) if whole > 0 else None


def _times(proc: Path) -> list[int] | None:
    try:
        return [int(each) for each in (proc / "stat").read_text().split("\n", 1)[0].split()[1:9]]
    except (OSError, ValueError, IndexError):
        return None


def _ticks_of(root: int | None, proc: Path) -> int:
    """Processor time of ``root`` and its descendants, in the kernel's ticks, as /proc/stat counts them."""
    if root is None:
        return 0
    known: dict[int, tuple[int, int]] = {}
    for stat in proc.glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            words = stat.read_text(errors="replace").rpartition(")")[2].split()
            known[int(stat.parent.name)] = int(words[1]), int(words[11]) + int(words[12])
    members = {root}
    while grown := {pid for pid, (parent, _) in known.items() if parent in members} - members:
        members |= grown
    return sum(known[pid][1] for pid in members if pid in known)
