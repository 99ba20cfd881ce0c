"""A prefix cache on the Mooncake conversation trace: published hit rates by capacity, and the simulator's pool."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from servewise.batching.policies import Continuous
from servewise.simulate.run import simulate
from servewise.simulate.unit_step import UnitStep
from servewise.techniques.reuse import BlockStore
from servewise.workload.load import load_workload
from servewise.workload.request import Request
from servewise.workload.traces.trace import Trace

BLOCK = 512
POLICY = Continuous(256, 8192, prefix_cache=True)


@pytest.fixture(scope="module")
def requests() -> list[Request]:
    """The trace's 12,031 requests."""
    trace = load_workload("mooncake-conv")
    assert isinstance(trace, Trace)
    return list(trace.requests(0))


def second_half(requests: Sequence[Request], found: Sequence[int]) -> float:
    """The share of prompt tokens found by the second half of the requests."""
    half = len(requests) // 2
    return sum(found[half:]) / sum(each.prompt_tokens for each in requests[half:])


def lru(requests: Sequence[Request], blocks: int | None, *, whole: bool = False) -> list[int]:
    """Tokens that each request finds in an LRU cache of so many blocks.

    ``whole``: of blocks that prompts fill, a prompt's last token left out, as engines keep and use them.
    """
    store, found = BlockStore(blocks), []
    for each in requests:
        keys = each.block_hashes[: each.prompt_tokens // BLOCK] if whole else each.block_hashes
        most = each.prompt_tokens - (1 + (each.prompt_tokens - 1) % BLOCK if whole else 0)
        found.append(min(store.leading(keys, 0.0) * BLOCK, most))
        store.use(keys, 0.0)
    return found


@pytest.mark.parametrize(
    ("tokens", "published"),
    [(2**16, 4.5), (2**18, 4.5), (2**20, 5.6), (2**22, 18.8), (2**24, 35.6), (None, 39.8)],
)
def test_published_hit_rates_by_capacity(requests: list[Request], tokens: int | None, published: float) -> None:
    """LRU over capacities as llmtrafficlens 0.12.0 prints them for this trace, to its last digit.

    Project page at pypi.org/project/llmtrafficlens/0.12.0 ("steady state: last 50% of requests"), which says that the
    official kvcache-simulator has 39.8% without a limit too. Its smallest cache (16K tokens: 3.6%) is smaller than
    most prompts: there the order in which a prompt uses its blocks decides, and ours keeps the beginning (4.5%).
    """
    found = second_half(requests, lru(requests, tokens // BLOCK if tokens else None))
    assert round(100 * found, 1) == published


def test_an_endless_pool_has_all_that_was_sent_before(requests: list[Request]) -> None:
    """One request at a time through the simulator: each record's cached tokens are the closed form's."""
    apart = [each._replace(arrival_s=1e5 * each.serial) for each in requests]
    run = simulate(apart, POLICY, UnitStep(), hash_block_tokens=BLOCK)
    assert list(run.requests.cached_tokens) == lru(requests, None, whole=True)


def test_a_pool_of_four_million_tokens_is_that_lru(requests: list[Request]) -> None:
    """So does a pool with a limit, within 0.1 points of LRU of that size (it also holds the running request): 19.8%."""
    apart = [each._replace(arrival_s=1e5 * each.serial) for each in requests]
    run = simulate(apart, POLICY, UnitStep(), blocks=2**22 // 16, hash_block_tokens=BLOCK)
    expected = second_half(requests, lru(requests, 2**22 // BLOCK, whole=True))
    assert second_half(requests, list(run.requests.cached_tokens)) == pytest.approx(expected, abs=0.001)
