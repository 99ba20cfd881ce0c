"""What the machine had to give around each run: its memory's bandwidth, and how busy others kept its cores.

On a machine that is shared, neighbours can halve either; a row that was measured then is told by these two figures.
"""

from __future__ import annotations

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
STAT = Path("/proc/stat")
BUSY_SHARE, SLOW_SHARE = 0.1, 0.75
SIDE = 1024


class Gauge:
    """Reads the machine while the server idles."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._read: Callable[[], object] | None = None

    def read(self) -> dict[str, Any]:
        """``bandwidth_bytes_per_s`` of reading memory, and ``others_share`` of all cores' time (None: not known)."""
        others = others_share()
        if self._read is None:
            first = next(stream_operations([WORKING_SET_BYTES], (), self._machine.device))
            self._read = first.prepare()
        timing = timing_of(sample(self._read, self._machine, 5, PATIENCE_S))
        return {"bandwidth_bytes_per_s": PIECE_BYTES / timing.median_s, "others_share": others}


def peak_flops_per_s(machine: Machine) -> float:
    """The rate of a matrix product in 16 bits [FLOP/s]."""
    (product,) = gemm_operations((SIDE,), ("bfloat16",), machine.device)
    return product.flops / timing_of(sample(product.prepare(), machine, 5, PATIENCE_S)).median_s


def others_share(look_s: float = LOOK_S, stat: Path = STAT) -> float | None:
    """The share of all cores' time that is taken while this program sleeps, stolen time of a virtual machine included.

    Linux's /proc/stat, first line: user, nice, system, idle, iowait, irq, softirq, steal (proc(5)).
    """
    before = _times(stat)
    time.sleep(look_s)
    after = _times(stat)
    if before is None or after is None:
        return None
    spent = [late - early for early, late in zip(before, after, strict=True)]
    whole = sum(spent)
    return 1 - (spent[3] + spent[4]) / whole if whole > 0 else None


def _times(stat: Path) -> list[int] | None:
    try:
        return [int(each) for each in stat.read_text().split("\n", 1)[0].split()[1:9]]
    except (OSError, ValueError, IndexError):
        return None
