"""Prefix reuse of streams: published traces, a naive twin, and where prompts break."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servewise.errors import InputError
from servewise.techniques import reuse
from servewise.techniques.reuse import Break, count_reuse
from servewise.workload.load import load_workload
from servewise.workload.request import Request
from servewise.workload.traces.trace import Trace

BLOCK = 16


def chained(prompts: Sequence[Sequence[int]], gap_s: float = 1.0) -> list[Request]:
    """Requests whose block hashes are those of the given block contents, chained as engines chain them."""
    names: dict[tuple[int, ...], int] = {}
    requests = []
    for serial, blocks in enumerate(prompts):
        hashes = tuple(names.setdefault(tuple(blocks[: end + 1]), len(names)) for end in range(len(blocks)))
        requests.append(Request(serial, serial * gap_s, len(blocks) * BLOCK, 1, hashes))
    return requests


def mooncake() -> Iterator[Request]:
    """The Mooncake conversation trace, whose blocks hold 512 tokens."""
    trace = load_workload("mooncake-conv")
    assert isinstance(trace, Trace)
    assert trace.hash_block_tokens == 512
    return trace.requests(0)


def naive_hits(requests: Sequence[Request], capacity: int | None, ttl_s: float | None) -> int:
    """The count from its definition: a block is held if fewer than ``capacity`` others were used since, and lately."""
    uses: list[tuple[float, int]] = []  # every use, a prompt's last block first
    hits = 0
    for request in requests:
        for block in request.block_hashes:
            last = max((i for i, (_, used) in enumerate(uses) if used == block), default=None)
            if last is None or (ttl_s is not None and request.arrival_s - uses[last][0] > ttl_s):
                break
            since = len({used for _, used in uses[last:]})
            if capacity is not None and since > capacity:
                break
            hits += 1
        uses.extend((request.arrival_s, block) for block in reversed(request.block_hashes))
    return hits


streams = st.lists(st.lists(st.integers(0, 2), max_size=6), max_size=14).map(chained)


def test_mooncake_conversation_trace() -> None:
    """FAST'25 conversation trace: an endless cache finds 36.64% of 288,500 leading blocks of 512 tokens.

    kvcache-ai/Mooncake @3b5a5941, FAST25-release/traces; counted independently when the trace was gathered.
    """
    found = count_reuse(mooncake(), 512)
    assert (found.requests, found.blocks) == (12_031, 288_500)
    assert round(found.block_hit_rate, 4) == 0.3664
    assert found.distinct_blocks == 288_500 - found.hit_blocks


def test_mooncake_through_a_real_pool() -> None:
    """A pool of 10,000 blocks finds less than one of 50,000, which finds less than the endless one."""
    requests = list(mooncake())
    small, large, endless = (count_reuse(requests, 512, capacity_blocks=size) for size in (10_000, 50_000, None))
    assert 0 < small.hit_blocks < large.hit_blocks < endless.hit_blocks


@given(streams, st.none() | st.integers(1, 12), st.none() | st.floats(0.5, 8))
def test_hits_are_those_of_the_definition(requests: list[Request], capacity: int | None, ttl_s: float | None) -> None:
    """The O(1) store finds exactly what stack distances and ages say."""
    found = count_reuse(requests, BLOCK, capacity_blocks=capacity, ttl_s=ttl_s)
    assert found.hit_blocks == naive_hits(requests, capacity, ttl_s)


@given(streams, st.integers(1, 12), st.floats(0.5, 8))
def test_more_room_and_more_time_never_hurt(requests: list[Request], capacity: int, ttl_s: float) -> None:
    """Hits never fall with capacity or lifetime, and never exceed the endless cache's."""

    def hits(capacity_blocks: int | None, life_s: float | None) -> int:
        return count_reuse(requests, BLOCK, capacity_blocks=capacity_blocks, ttl_s=life_s).hit_blocks

    assert hits(capacity, ttl_s) <= hits(capacity + 1, ttl_s) <= hits(None, ttl_s) <= hits(None, None)
    assert hits(capacity, ttl_s) <= hits(capacity, ttl_s * 2) <= hits(capacity, None) <= hits(None, None)


@given(streams, st.none() | st.integers(1, 12))
def test_counts_add_up(requests: list[Request], capacity: int | None) -> None:
    """Every block is hit or missed, no more tokens are reused than sent; an endless cache misses each block once."""
    found = count_reuse(requests, BLOCK, capacity_blocks=capacity)
    assert found.requests == len(requests)
    assert found.blocks == sum(len(request.block_hashes) for request in requests)
    assert found.reusable_tokens <= found.prompt_tokens
    assert 0 <= found.hit_rate <= 1
    distinct = len({block for request in requests for block in request.block_hashes})
    assert found.distinct_blocks == distinct
    if capacity is None:
        assert found.blocks - found.hit_blocks == distinct
        assert all(row.kind == "divergence" for row in found.breaks)


def test_breaks_are_told_apart() -> None:
    """Two tails after one head is a divergence at the head's end; growth of a chat is none; a shared start is none."""
    turns = [[7, 1], [7, 1, 2], [7, 1, 2, 3]]  # one conversation, growing
    others = [[7, 5, 5, 5], [7, 6, 6]]  # same system prompt, then another text
    found = count_reuse(chained(turns + others), BLOCK)
    assert found.breaks == (Break(BLOCK, "divergence", 0, 2, 3 * BLOCK + 2 * BLOCK),)
    assert found.hit_blocks == 0 + 2 + 3 + 1 + 1


def test_a_clock_at_the_start_breaks_everything() -> None:
    """A block that changes in front makes each prompt diverge at offset 0: all but the first's tokens are lost."""
    found = count_reuse(chained([[stamp, 1, 2, 3] for stamp in range(10)]), BLOCK)
    assert found.breaks == (Break(0, "divergence", None, 9, 9 * 4 * BLOCK),)
    assert found.hit_rate == 0


def test_evicted_blocks_are_named_as_such() -> None:
    """In a cache of two blocks the first prompt is gone when it comes again: dropped, at offset 0."""
    found = count_reuse(chained([[1, 1], [2, 2], [1, 1]]), BLOCK, capacity_blocks=2)
    assert [(row.kind, row.offset_tokens, row.requests) for row in found.breaks] == [
        ("divergence", 0, 1),
        ("dropped", 0, 1),
    ]


def test_expired_blocks_are_named_as_such() -> None:
    """After 10 s without use a block that lives 5 s is dropped; each use renews it."""
    same = chained([[1], [1], [1]], gap_s=4.0)
    assert count_reuse(same, BLOCK, ttl_s=5.0).hit_blocks == 2
    late = [same[0], same[1]._replace(arrival_s=10.0)]
    found = count_reuse(late, BLOCK, ttl_s=5.0)
    assert (found.hit_blocks, found.breaks[0].kind) == (0, "dropped")


def test_prompts_larger_than_the_cache_keep_their_head() -> None:
    """Of a prompt of six blocks a cache of four keeps the leading four, the ones that the next prompt can reuse."""
    found = count_reuse(chained([[1, 2, 3, 4, 5, 6]] * 2), BLOCK, capacity_blocks=4)
    assert found.hit_blocks == 4


def test_a_partly_filled_last_block_counts_its_own_tokens() -> None:
    """A prompt of 20 tokens in two blocks of 16, found whole, reuses 20 tokens and not 32."""
    prompt = Request(0, 0.0, 20, 1, (0, 1))
    found = count_reuse([prompt, prompt], BLOCK)
    assert (found.reusable_tokens, found.prompt_tokens) == (20, 40)


def test_places_are_bounded_and_the_heaviest_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """With room for 4 places, 200 places of which one is far the costliest leave at most 4, that one first."""
    heads = [[head, tail] for head in range(200) for tail in range(2)]
    heavy = [[999] + [0] * 50, [999] + [1] * 50]
    found = count_reuse(chained(heavy + heads), BLOCK, max_breaks=4)
    assert len(found.breaks) == 4
    assert found.breaks[0].lost_tokens >= 50 * BLOCK


def test_memory_of_blocks_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond its limit the ledger forgets the oldest blocks; hits do not change by it."""
    requests = chained([[head, 0, head] for head in range(60)] * 2)
    before = count_reuse(requests, BLOCK, capacity_blocks=8)
    monkeypatch.setattr(reuse, "MAX_REMEMBERED", 10)
    after = count_reuse(requests, BLOCK, capacity_blocks=8)
    assert after.hit_blocks == before.hit_blocks


def test_a_stream_is_read_once() -> None:
    """Requests come from a generator, and an empty one gives zeros."""
    found = count_reuse(iter(()), BLOCK)
    assert (found.requests, found.hit_rate, found.block_hit_rate, found.breaks) == (0, 0.0, 0.0, ())


@pytest.mark.parametrize(
    "wrong", [{"capacity_blocks": 0}, {"ttl_s": 0.0}, {"ttl_s": float("nan")}, {"block_tokens": 0}]
)
def test_impossible_caches_are_refused(wrong: dict[str, float]) -> None:
    """A cache without blocks, lifetime or block size is wrong input."""
    with pytest.raises(InputError):
        count_reuse([], **({"block_tokens": BLOCK} | wrong))  # type: ignore[arg-type]
