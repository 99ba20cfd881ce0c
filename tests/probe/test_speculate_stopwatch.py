"""The stopwatch of the speculation probe: seconds on the core with one thread, plain seconds with more."""

from __future__ import annotations

import time

import pytest

pytest.importorskip("torch")

from servewise.probe.ops.machine import Machine
from servewise.probe.speculate.stopwatch import stopwatch_for


def machine(threads: int | None, device: str = "cpu") -> Machine:
    """A machine of that many threads."""
    return Machine(device=device, title="a machine", memory_bytes=1, threads=threads)


def test_with_one_thread_the_time_on_the_core_is_counted() -> None:
    """A thread that sleeps is on no core: 50 ms of sleep count as nearly nothing, work counts."""
    stopwatch = stopwatch_for(machine(1))
    start = stopwatch.clock()
    time.sleep(0.05)
    slept = stopwatch.clock() - start
    sum(range(2_000_000))

    assert stopwatch.on_core
    assert 0 <= slept < 0.02
    assert stopwatch.clock() - start > slept
    assert stopwatch.waited() == 0.0


@pytest.mark.parametrize("other", [machine(2), machine(None, "cuda")])
def test_with_more_threads_or_a_gpu_it_is_the_wall_clock(other: Machine) -> None:
    """Seconds pass as they do, and the wait is told beside them."""
    stopwatch = stopwatch_for(other)
    start = stopwatch.clock()
    time.sleep(0.02)

    assert stopwatch.clock() - start >= 0.02
    assert not stopwatch.on_core
    assert stopwatch.waited() >= 0.0
