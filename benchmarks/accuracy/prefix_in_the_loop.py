"""Prefix caching in the simulator: python -m benchmarks.accuracy.prefix_in_the_loop (about a minute).

Hit rates of the Mooncake conversation trace by the size of the pool, against published ones for the same trace and
against the closed form; what a cache does to TTFT and to the sequences held at once; conversations that grow their own
prefix. Nothing is fitted. Step times are the ideal roofline's, so that the result hangs on no coefficient. Writes
benchmarks/results/prefix_in_the_loop.json.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks import record
from servewise.batching.policies import Continuous
from servewise.deployment.capacity import KvCapacity, kv_capacity
from servewise.deployment.deployment import Deployment, Parallelism
from servewise.hardware.catalogue import load_accelerator
from servewise.metrics.summary import summarise
from servewise.modelspec.load import load_model
from servewise.precision import FORMATS
from servewise.simulate.run import Run, simulate
from servewise.simulate.settled import since
from servewise.simulate.unit_step import UnitStep
from servewise.steptime.ideal import ideal_roofline
from servewise.techniques.reuse import BlockStore, count_reuse
from servewise.techniques.session_reuse import session_reuse
from servewise.workload.conversations import Conversations
from servewise.workload.load import load_workload
from servewise.workload.request import Request
from servewise.workload.sessions import SessionArrivals
from servewise.workload.traces.trace import Trace

PUBLISHED = Path(__file__).parents[1] / "data" / "prefix_in_the_loop" / "published_hit_rates.csv"
MOONCAKE_BLOCK = 512
LARGEST_REQUEST = 131_072  # tokens; a smaller pool refuses some of the trace's requests
CACHED, PLAIN = Continuous(256, 8192, prefix_cache=True), Continuous(256, 8192)
TALK_RATES = (0.5, 2.0, 4.0, 8.0)
PREFIX_TOKENS, OWN_TOKENS, POOL_BLOCKS = 2_048, 512, 1_000


def mooncake() -> Trace:
    """The conversation trace."""
    found = load_workload("mooncake-conv")
    assert isinstance(found, Trace)
    return found


def hit_rates(requests: Sequence[Request]) -> list[dict[str, Any]]:
    """By capacity: published, by the closed form of LRU, and what a pool of that size had, one request at a time."""
    with PUBLISHED.open(encoding="utf-8") as file:
        published = [
            (int(row["capacity_tokens"] or 0), float(row["hit_rate_second_half"])) for row in csv.DictReader(file)
        ]
    return [
        {
            "capacity_tokens": tokens or None,
            "published": rate,
            "closed_form": second_half(requests, lru(requests, tokens // MOONCAKE_BLOCK or None)),
            "whole_blocks": second_half(requests, lru_whole(requests, tokens // MOONCAKE_BLOCK or None)),
            "simulated": alone(requests, tokens) if not tokens or tokens > LARGEST_REQUEST else None,
        }
        for tokens, rate in published
    ]


def lru(requests: Iterable[Request], blocks: int | None) -> list[int]:
    """Tokens that each request finds in an LRU cache of so many blocks, requests taken one after another."""
    store, found = BlockStore(blocks), []
    for each in requests:
        found.append(min(store.leading(each.block_hashes, 0.0) * MOONCAKE_BLOCK, each.prompt_tokens))
        store.use(each.block_hashes, 0.0)
    return found


def lru_whole(requests: Iterable[Request], blocks: int | None) -> list[int]:
    """The same of blocks that prompts fill, a prompt's last token left out: what an engine can keep and use."""
    store, found = BlockStore(blocks), []
    for each in requests:
        whole = each.block_hashes[: each.prompt_tokens // MOONCAKE_BLOCK]
        found.append(MOONCAKE_BLOCK * min(store.leading(whole, 0.0), (each.prompt_tokens - 1) // MOONCAKE_BLOCK))
        store.use(whole, 0.0)
    return found


def second_half(requests: Sequence[Request], found: Sequence[int]) -> float:
    """The share of prompt tokens found, over the second half of the requests: as the published rates are taken."""
    half = len(requests) // 2
    return sum(found[half:]) / sum(each.prompt_tokens for each in requests[half:])


def alone(requests: Sequence[Request], tokens: int) -> float:
    """The same out of the simulator's records: a pool of ``tokens`` (0: endless), one request at a time."""
    apart = [each._replace(arrival_s=1e5 * each.serial) for each in requests]
    blocks = tokens // 16 if tokens else None
    run = simulate(apart, CACHED, UnitStep(), blocks=blocks, hash_block_tokens=MOONCAKE_BLOCK)
    return second_half(requests, list(run.requests.cached_tokens))


def endless_is_exact(requests: Sequence[Request]) -> dict[str, int]:
    """Tokens found in all in an endless pool: by the closed forms and by the records, which must be equal."""
    usable = sum(lru_whole(requests, None))
    apart = [each._replace(arrival_s=1e5 * each.serial) for each in requests]
    run = simulate(apart, CACHED, UnitStep(), hash_block_tokens=MOONCAKE_BLOCK)
    simulated = sum(run.requests.cached_tokens)
    assert simulated == usable, f"{simulated} tokens in the records, {usable} by the closed form"
    closed_form = count_reuse(requests, MOONCAKE_BLOCK).reusable_tokens
    return {"closed_form": closed_form, "whole_blocks": usable, "simulated": simulated}


def server(tensor: int) -> tuple[Deployment, KvCapacity]:
    """Llama-3.1-8B on so many H100s."""
    half = FORMATS["bf16"]
    found = Deployment(
        model=load_model("llama-3.1-8b"),
        accelerator=load_accelerator("h100-sxm"),
        kv=half,
        activations=half,
        engine="vllm",
        parallelism=Parallelism(tensor=tensor),
    )
    capacity = kv_capacity(found)
    assert isinstance(capacity, KvCapacity)
    return found, capacity


def mooncake_served(trace: Trace) -> list[dict[str, Any]]:
    """The trace at its recorded times on four H100s: no cache, the pool that fits, and pools of other sizes."""
    deployment, capacity = server(4)
    clock = ideal_roofline(deployment)
    pools: list[tuple[str, Continuous, int | None]] = [
        ("no cache", PLAIN, capacity.blocks),
        ("its own pool", CACHED, capacity.blocks),
        ("4M tokens", CACHED, 2**22 // 16),
        ("16M tokens", CACHED, 2**24 // 16),
        ("endless", CACHED, None),
    ]
    rows = []
    for name, policy, blocks in pools:
        run = simulate(trace.requests(0), policy, clock, blocks=blocks, hash_block_tokens=MOONCAKE_BLOCK)
        rows.append({"pool": name, "pool_tokens": None if blocks is None else blocks * 16, **_latency(run)})
    return rows


def talks_served() -> list[dict[str, Any]]:
    """chat-multiturn on one H100 by rate: no cache, a cache of prompts alone, and one that keeps answers too."""
    deployment, capacity = server(1)
    clock = ideal_roofline(deployment)
    rows = []
    for rate in TALK_RATES:
        talks = load_workload("chat-multiturn", rate_per_s=rate, requests=2_000)
        assert isinstance(talks, Conversations)
        many = replace(talks, count=60_000).conversations(1)
        closed_form = session_reuse(many, rate, capacity.blocks * 16).hit_rate
        for name, policy, answers in (
            ("no cache", PLAIN, True),
            ("prompts", CACHED, False),
            ("answers too", CACHED, True),
        ):
            source = talks.session(0)
            taken = source if answers else PromptsOnly(source, talks.block_tokens)
            run = simulate(taken, policy, clock, blocks=capacity.blocks, hash_block_tokens=talks.block_tokens)
            run = since(run, source.settle_s)
            row = {"rate_per_s": rate, "kept": name, "pool_tokens": capacity.blocks * 16}
            rows.append({**row, "closed_form": closed_form if name == "answers too" else None, **_latency(run)})
    return rows


class PromptsOnly:
    """Turns whose hashes are cut to their prompts: an engine that forgets what it generated."""

    def __init__(self, inner: SessionArrivals, block_tokens: int) -> None:
        self._inner, self._block_tokens = inner, block_tokens

    @property
    def next_s(self) -> float:
        """As it comes."""
        return self._inner.next_s

    def take(self) -> Request:
        """The turn without its answer's blocks."""
        turn = self._inner.take()
        return turn._replace(block_hashes=turn.prompt_hashes(self._block_tokens), answer_hashed=False)

    def ended(self, serial: int, now_s: float) -> None:
        """As it goes on."""
        self._inner.ended(serial, now_s)


def held_at_once() -> dict[str, int]:
    """Sequences that a pool holds when all share a prefix: by the closed forms, and in runs."""
    whole, own = (PREFIX_TOKENS + OWN_TOKENS) // 16, OWN_TOKENS // 16
    shared = tuple(range(PREFIX_TOKENS // 16))
    burst = [Request(0, 0.0, PREFIX_TOKENS + 1, 1, shared)]
    burst += [Request(serial, 10.0, PREFIX_TOKENS + OWN_TOKENS, 1, shared) for serial in range(1, 400)]
    most = {}
    for name, policy in (("without", PLAIN), ("with", CACHED)):
        big = Continuous(1024, 10**7, prefix_cache=policy.prefix_cache)
        run = simulate(burst, big, UnitStep(), blocks=POOL_BLOCKS, hash_block_tokens=16)
        most[name] = max(run.steps.running)
    return {
        "closed_form_without": POOL_BLOCKS // whole,
        "without": most["without"],
        "closed_form_with": (POOL_BLOCKS - PREFIX_TOKENS // 16) // own,
        "with": most["with"],
    }


def _latency(run: Run) -> dict[str, Any]:
    found = summarise(run.requests, run.steps, slots=run.slots)
    return {
        "completed": found.completed,
        "rejected": found.rejected,
        "hit_rate": found.prefix_hit_rate,
        "ttft_p50_s": found.ttft.p50,
        "ttft_p95_s": found.ttft.p95,
        "tpot_p50_s": found.tpot.p50,
        "preemptions": found.preemptions,
    }


def result() -> dict[str, Any]:
    """All of it."""
    trace = mooncake()
    requests = list(trace.requests(0))
    return {
        "hit_rates": hit_rates(requests),
        "endless": endless_is_exact(requests),
        "mooncake": mooncake_served(trace),
        "chat_multiturn": talks_served(),
        "held_at_once": held_at_once(),
    }


def main() -> None:
    """Run, print, write."""
    found = result()
    for name in ("hit_rates", "mooncake", "chat_multiturn"):
        rows = found[name]
        print(f"\n{name}")
        record.table(list(rows[0]), [list(row.values()) for row in rows])
    print(f"\nendless pool, tokens found: {found['endless']}\nsequences held at once: {found['held_at_once']}")
    record.save("prefix_in_the_loop", found)


if __name__ == "__main__":
    main()
