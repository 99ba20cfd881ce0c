"""Who sends: what is refused before, and what must be known beside the figures after."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.measure.bench.test_campaign import run
from tests.measure.bench.virtual import VirtualServer

from servewise.ask.bench_caveats import run_caveats
from servewise.ask.bench_options import BenchOptions, asked
from servewise.ask.bench_rows import hosts
from servewise.ask.bench_senders import refuse_loopback, senders
from servewise.errors import InputError, UnknownName
from servewise.measure.addressing import target_of
from servewise.measure.bench.measured import Measured
from servewise.measure.crew.relay import loopback
from servewise.measure.sending import HostShare
from servewise.metrics.slo import parse_slo

OPTIONS = BenchOptions(model="m", hardware="stand-in", precision="none", concurrency=4)
NEAR = HostShare(host="near", workers=1, requests=20, completed=20)
FAR = HostShare(
    host="far", workers=1, requests=20, completed=18, lost=2, end="gone", offset_s=9.0, offset_bound_s=0.02, pings=16
)


def measured(*shares: HostShare) -> Measured:
    """A run in virtual time (TTFT 0.25 s, a request each 0.1875 s) as if these hosts had sent it."""
    found = run(VirtualServer())
    return replace(found, sending=replace(found.sending, hosts=shares))


def codes(found: Measured) -> set[str]:
    """Of its caveats."""
    return {each.code for each in run_caveats(asked("http://127.0.0.1:1", OPTIONS), [[found]])}


def test_a_lost_host_is_a_caveat_and_no_run_that_held() -> None:
    """It is told by name with what it took along; a search must not take a lighter load for the one it asked for."""
    slo = parse_slo("ttft_p95<=1s")
    found = measured(NEAR, FAR)
    (caveat,) = [
        each for each in run_caveats(asked("http://127.0.0.1:1", OPTIONS), [[found]]) if each.code == "sender-lost"
    ]

    assert "far lost workers in mid-run (gone): 2 requests" in caveat.message
    assert "sender-lost" not in codes(measured(NEAR))
    assert measured(NEAR).holds(slo, 0.01)
    assert not found.holds(slo, 0.01)


@pytest.mark.parametrize(("bound_s", "told"), [(0.0, False), (0.018, False), (0.019, True), (0.5, True)])
def test_clocks_that_are_not_known_well_enough_are_a_caveat(bound_s: float, told: bool) -> None:
    """From a tenth of the finest time on, here 0.1875 s between requests."""
    assert ("clocks-apart" in codes(measured(NEAR, replace(NEAR, host="far", clock_bound_s=bound_s)))) == told


def test_a_hosts_part_is_over_all_repeats() -> None:
    """Counts are added up, the clock is as it was worst known, a loss stays told."""
    worse = replace(FAR, requests=5, completed=5, lost=0, end="", offset_s=9.5, clock_bound_s=0.04)
    near, far = hosts([measured(NEAR, FAR), measured(NEAR, worse)])

    assert (near["requests"], near["lost"], near["end"]) == (40, 0, "")
    assert (far["requests"], far["completed"], far["lost"]) == (25, 23, 2)
    assert (far["offset_s"], far["clock_bound_s"], far["end"]) == (9.5, 0.04, "gone")
    assert hosts([measured()]) == []


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "localhost", "0.0.0.0"])
def test_loopback_is_refused_where_it_means_other_machines(host: str) -> None:
    """Each host would measure itself: refused by name; fine where all are this machine, or for a real address."""
    target = target_of(f"http://{host}:8000", model="m")

    with pytest.raises(InputError, match="b7"):
        refuse_loopback(target, {"here": loopback(), "b7": "another boot"})
    refuse_loopback(target, {"here": loopback()})
    refuse_loopback(target_of("http://192.0.2.7:8000", model="m"), {"b7": "another boot"})


def test_who_sends() -> None:
    """One process needs no crew; several are one; a word that is no executor is refused before anything starts."""
    target = target_of("http://127.0.0.1:1", model="m")
    with senders(OPTIONS, target) as crew:
        assert crew is None
    with senders(replace(OPTIONS, workers=2, executor="local"), target) as crew:
        assert crew is not None
        assert (crew.workers, crew.lead_s) == (2, 0.0)
    with pytest.raises(UnknownName):
        asked("http://127.0.0.1:1", replace(OPTIONS, executor="rai"))
    with pytest.raises(InputError):
        asked("http://127.0.0.1:1", replace(OPTIONS, executor="ray://nowhere"))
