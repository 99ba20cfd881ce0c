"""Loads foretold as they will be measured, against closed forms."""

from __future__ import annotations

import math

import pytest

from servewise.ask.foretelling import Load, capacity_per_s, foretell
from servewise.ask.loop import highest_rate, rows_of
from servewise.batching.policies import Continuous
from servewise.metrics.slo import parse_slo
from servewise.plan.server import Server
from servewise.simulate.unit_step import UnitStep
from servewise.workload.lengths import Fixed
from servewise.workload.prefix import SharedPrefix

SERVER = Server(policy=Continuous(max_sequences=4), estimator=UnitStep(), blocks=None, block_tokens=16)


def load(requests: int, **of: float | int | SharedPrefix) -> Load:
    """Prompts of 8 tokens, answers of 10."""
    return Load(requests=requests, prompts=Fixed(8), outputs=Fixed(10), **of)  # type: ignore[arg-type]


def test_one_stream_by_hand() -> None:
    """With steps of 1 s an answer of 10 tokens takes 10 s: TTFT 1, TPOT 1, and 1 token/s."""
    found = foretell(SERVER, load(30, streams=1), seeds=2)

    assert found.ttft.p50 == found.tpot.p95 == 1.0
    assert found.output_tokens_per_s == pytest.approx(1.0, rel=0.05)


def test_a_pause_lowers_the_rate() -> None:
    """A user who pauses 10 s after each answer of 10 s gets half as many tokens a second."""
    found = foretell(SERVER, load(40, streams=1, pause_s=10.0), seeds=1)

    assert found.output_tokens_per_s == pytest.approx(0.5, rel=0.06)


def test_more_users_than_slots_wait() -> None:
    """Eight users of four slots wait for a whole answer before their own begins: TTFT 11 s, 4 tokens a second."""
    found = foretell(SERVER, load(200, streams=8), seeds=1)

    assert found.ttft.p50 == pytest.approx(11.0, abs=0.01)
    assert found.output_tokens_per_s == pytest.approx(4.0, rel=0.03)


def test_capacity_is_slots_over_service_time() -> None:
    """Four slots of 10 s each complete 0.4 requests/s."""
    assert capacity_per_s(SERVER, load(1)) == pytest.approx(0.4, rel=0.02)


def test_highest_rate_lies_below_the_capacity() -> None:
    """The highest rate that keeps a TTFT is below 0.4/s, grows with the bound, and none keeps an impossible one."""
    tight, loose = (highest_rate(SERVER, load(1), parse_slo(f"ttft_p95<={each}s")) for each in (3, 30))

    assert tight is not None
    assert loose is not None
    assert 0.0 < tight < loose < 0.41
    assert highest_rate(SERVER, load(1), parse_slo("ttft_p95<=0.5s")) is None


def test_shared_prefixes_count_as_prompt() -> None:
    """A shared prefix comes on top of the prompts, and loads that share one name their streams."""
    found = load(20, streams=1, prefix=SharedPrefix(1, 64))

    assert str(found) == "1 stream"
    assert foretell(SERVER, found, seeds=1).completed > 0


def test_rows_hold_both_and_their_ratio() -> None:
    """Each metric stands as foretold, as measured, and as their ratio; what was not measured is null."""
    found = foretell(SERVER, load(30, streams=1), seeds=1)
    measured = {"ttft_s": {"p50": 0.5, "p95": 2.0, "ci95_p50": [0.4, 0.6]}, "output_tokens_per_s": 2.0}
    rows = {row["metric"]: row for row in rows_of(found, measured)}

    assert rows["ttft_p50_s"]["ratio"] == 2.0
    assert rows["ttft_p50_s"]["ci95"] == [0.4, 0.6]
    assert rows["output_tokens_per_s"]["ratio"] == pytest.approx(0.5, rel=0.05)
    assert rows["tpot_p50_s"]["measured"] is None
    assert rows["tpot_p50_s"]["ratio"] is None
    assert math.isfinite(rows["tpot_p50_s"]["predicted"])


def test_a_prefix_is_shared_in_blocks_of_the_pool() -> None:
    """A pool of 256-token blocks shares 512 of 520 prompt tokens after the first request, in whatever blocks the
    prefix was described."""
    pool = Server(
        policy=Continuous(max_sequences=4, prefix_cache=True), estimator=UnitStep(), blocks=None, block_tokens=256
    )
    found = foretell(pool, load(20, streams=1, prefix=SharedPrefix(1, 512)), seeds=1)

    assert found.cached_tokens == (found.prompt_tokens / 520 - 1) * 512
