"""The machine's state around a run."""

from __future__ import annotations

from pathlib import Path
from threading import Timer

import pytest

pytest.importorskip("torch")

from servewise.ask.serve_small.machine import Gauge, others_share
from servewise.ask.serve_small.rows import machine_caveats
from servewise.probe.ops.machine import this_machine


def test_the_share_of_busy_time_is_read_off_the_kernels_counts(tmp_path: Path) -> None:
    """proc(5): user nice system idle iowait irq softirq steal; 30 of 100 ticks were neither idle nor waiting."""
    stat = tmp_path / "stat"
    stat.write_text("cpu  100 0 50 1000 10 0 0 0 0 0\n")
    after = "cpu  115 0 60 1065 15 0 0 5 0 0\n"
    timer = Timer(0.05, lambda: stat.write_text(after))
    timer.start()
    try:
        assert others_share(0.3, proc=tmp_path) == pytest.approx(0.3)
    finally:
        timer.join()


def test_the_servers_own_time_is_not_others(tmp_path: Path) -> None:
    """Process 7 and its child 8 took 20 of the 30 busy ticks (fields 14 and 15 of proc(5)'s pid/stat)."""

    def write(times: str, *ticks: int) -> None:
        (tmp_path / "stat").write_text(times)
        for pid, parent, taken in zip((7, 8, 9), (1, 7, 1), ticks, strict=True):
            (tmp_path / str(pid)).mkdir(exist_ok=True)
            fields = ["S", str(parent), *["0"] * 9, str(taken), "0", "0"]
            (tmp_path / str(pid) / "stat").write_text(f"{pid} (a ) name) {' '.join(fields)}")

    write("cpu  100 0 50 1000 10 0 0 0 0 0\n", 5, 5, 5)
    timer = Timer(0.05, lambda: write("cpu  115 0 60 1065 15 0 0 5 0 0\n", 15, 15, 15))
    timer.start()
    try:
        assert others_share(0.3, but=7, proc=tmp_path) == pytest.approx(0.1)
    finally:
        timer.join()


def test_a_system_that_does_not_tell_gives_none(tmp_path: Path) -> None:
    """No /proc/stat, or one that cannot be read: not known."""
    assert others_share(0.0, proc=tmp_path / "none") is None
    (tmp_path / "stat").write_text("cpu x y")
    assert others_share(0.0, proc=tmp_path) is None


def test_the_gauge_reads_a_bandwidth_that_memory_can_have() -> None:
    """Between 0.1 and 10,000 GB/s on anything that runs this."""
    found = Gauge(this_machine()).read()
    assert 1e8 < found["bandwidth_bytes_per_s"] < 1e13


def row(bandwidth: float | None, others: float | None) -> dict[str, float | None]:
    """A row's two figures."""
    return {"bandwidth_bytes_per_s": bandwidth, "others_share": others}


def test_a_halved_bandwidth_and_busy_cores_are_told() -> None:
    """Each has its own caveat; a quiet machine has none."""
    assert machine_caveats([row(60e9, 0.01), row(58e9, None), row(None, 0.0)]) == ()
    (found,) = machine_caveats([row(60e9, 0.01), row(30e9, 0.02)])
    assert found.code == "bandwidth-changed"
    (found,) = machine_caveats([row(60e9, 0.5), row(60e9, 0.02)])
    assert found.code == "disturbed"
