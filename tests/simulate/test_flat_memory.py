"""A long run's memory does not grow with its requests: ten times as many take what a tenth takes."""

from __future__ import annotations

import subprocess
import sys

import pytest

# Peak memory [kB] of a process that simulates so many requests and summarises them.
PROGRAM = """
import resource, sys
from servewise.batching.policies import Continuous
from servewise.metrics.streamed.digest import Digest
from servewise.scratch import Scratch
from servewise.simulate.run import simulate
from servewise.simulate.unit_step import UnitStep
from servewise.workload.load import load_workload
requests = load_workload("chat", rate_per_s=0.5, requests=int(sys.argv[1])).requests(0)
with Scratch() as scratch:
    digest = Digest(scratch, slots=256)
    simulate(requests, Continuous(256, 8192), UnitStep(), into=digest)
    summary, balance = digest.summary(), digest.balance()
assert summary.completed == int(sys.argv[1])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
GROWTH_KB = 16_384  # in memory, 180,000 requests more have 48,000 kB of records


def _peak_kb(requests: int) -> int:
    found = subprocess.run([sys.executable, "-c", PROGRAM, str(requests)], check=True, capture_output=True, text=True)
    return int(found.stdout)


@pytest.mark.slow
def test_memory_is_flat() -> None:
    """From 70,000 requests on, when every buffer has been filled once, to 250,000: no more than noise."""
    assert _peak_kb(250_000) - _peak_kb(70_000) < GROWTH_KB
