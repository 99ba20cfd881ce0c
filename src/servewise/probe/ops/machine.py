"""The device that a probe runs on: its name, its memory, its threads, and whether others hold it up."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from pathlib import Path
from threading import get_native_id

import torch

from servewise.errors import InputError

TASKS = Path("/proc/self/task")
CPU_INFO = Path("/proc/cpuinfo")


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One device as PyTorch drives it. ``threads`` is what a CPU operation runs on, None on a GPU."""

    device: str
    title: str
    memory_bytes: int
    threads: int | None

    def synchronise(self) -> None:
        """Wait until all queued work is done."""
        if self.device != "cpu":
            torch.cuda.synchronize(self.device)

    def __str__(self) -> str:
        """E.g. ``AMD EPYC 9654 (2 threads)``."""
        return f"{self.title} ({self.threads} threads)" if self.threads else self.title


def this_machine(device: str = "cpu", threads: int | None = None) -> Machine:
    """The machine behind ``device`` (cpu, cuda, cuda:1), its CPU operations on ``threads`` threads (None: PyTorch's).

    Sets the process's thread count. Raises InputError for a device that is not there.
    """
    kind, _, number = device.partition(":")
    if kind == "cpu" and not number:
        cores = os.cpu_count() or 1
        if threads is not None:
            if not 1 <= threads <= cores:
                raise InputError(f"must be from 1 to the {cores} cores here, not {threads}", where="threads")
            torch.set_num_threads(threads)
        return Machine(device="cpu", title=_cpu(), memory_bytes=_memory(), threads=torch.get_num_threads())
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if kind != "cuda" or not (number or "0").isdigit() or int(number or 0) >= count:
        known = ", ".join(["cpu", *(f"cuda:{each}" for each in range(count))])
        raise InputError(f"no device {device!r} here", where="device", hint=f"one of {known}")
    facts = torch.cuda.get_device_properties(device)
    return Machine(device=device, title=facts.name, memory_bytes=facts.total_memory, threads=None)


def waited_s(*, all_threads: bool = True) -> float | None:
    """Seconds that this process's threads (or the calling one alone) have waited for a core so far, summed.

    Linux's ``schedstat``, second field; None where the system does not tell. What neighbours on the machine take from
    a measurement shows here.
    """
    try:
        tasks = TASKS.iterdir() if all_threads else (TASKS / str(get_native_id()),)
        return sum(int(each.joinpath("schedstat").read_text().split()[1]) for each in tasks) * 1e-9
    except (OSError, ValueError, IndexError):
        return None


def _cpu() -> str:
    try:
        lines = CPU_INFO.read_text().splitlines()
    except OSError:
        lines = []
    named = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or platform.machine() or "CPU")


def _memory() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
