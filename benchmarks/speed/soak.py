"""A real `servewise serve` under mixed load for long: `python -m benchmarks.speed.soak --minutes 30`.

SmolLM2 135M behind the compiled kernels, which give the same bits whatever runs beside a request. The load: chats and
completions, streamed and whole, greedy and sampled with a seed, shared prefixes, bursts beyond the queue, clients that
leave at random moments, that do not read, that send half a request or nonsense, or bring a wrong key. Every answer is
held against the one that the same server gave to the same request alone, before. At the end nothing may be left.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time

from benchmarks.record import save, table
from benchmarks.speed.soak_acts import ACTS, Soak, references, warmed
from benchmarks.speed.soak_server import Server, served
from benchmarks.speed.soak_verdict import Sample, verdict

EVERY_S = 2.0
LONG_S = 300.0  # a soak of which growth is judged; it is warmed first


async def _work(soak: Soak, until_s: float, seed: int) -> None:
    """One client: an act after another, with a pause between."""
    rng = soak.stream(seed)
    names, weights = zip(*((name, weight) for name, (weight, _) in ACTS.items()), strict=True)
    while soak.now_s < until_s:
        name = rng.choices(names, weights)[0]
        await soak.act(name, rng)
        await asyncio.sleep(rng.expovariate(1.5))


async def _watch(soak: Soak, server: Server, until_s: float) -> list[Sample]:
    found = []
    while soak.now_s < until_s:
        found.append(await _sample(soak, server))
        if sys.stderr.isatty():
            print(f"\r{soak.now_s:6.0f} s  {soak.total} acts  {len(soak.wrong)} wrong  ", end="", file=sys.stderr)
        await asyncio.sleep(EVERY_S)
    return found


async def _sample(soak: Soak, server: Server) -> Sample:
    usage, told = server.usage(), await soak.metrics()
    return Sample(
        at_s=soak.now_s,
        rss_bytes=usage["rss_bytes"],
        descriptors=usage["descriptors"],
        threads=usage["threads"],
        kv_use=told["kv_use"],
        running=told["running"],
        inside=told["inside"],
    )


async def run(server: Server, seconds: float, clients: int, seed: int, every: int = 1) -> dict[str, object]:
    """Soak ``server`` with one in ``every`` of the known requests; the result of record without the machine."""
    soak = Soak(server.url, server.key, every, min(60.0, seconds / 4))
    soak.references = await references(soak)
    if seconds >= LONG_S:
        await warmed(soak)
    before, soak.start_s = server.usage(), time.monotonic()
    watching = asyncio.create_task(_watch(soak, server, seconds))
    await asyncio.gather(*(_work(soak, seconds, seed + each) for each in range(clients)))
    samples = await watching
    await soak.until_idle()
    after = await _sample(soak, server)
    page = await soak.page()
    server.stop()
    return verdict(soak, samples, before, after, page, server.ended)


def main() -> int:
    """Run it; the exit code is 1 where something was wrong."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--minutes", type=float, default=30.0)
    options.add_argument("--clients", type=int, default=6)
    options.add_argument("--seed", type=int, default=0)
    given = options.parse_args()
    with served(nice=10) as server:
        result = asyncio.run(run(server, given.minutes * 60, given.clients, given.seed))
    outcomes = result["outcomes"]
    assert isinstance(outcomes, dict)
    table(("act", "outcome", "times"), [tuple(each.split(": ")) + (count,) for each, count in outcomes.items()])
    for name in ("requests", "wrong", "leaked_blocks", "rss", "descriptors", "threads", "passed"):
        print(f"{name}: {result[name]}")
    save("soak", {"minutes": given.minutes, "clients": given.clients, "seed": given.seed} | result)
    return 0 if result["passed"] else 1


if __name__ == "__main__":
    sys.exit(main())
