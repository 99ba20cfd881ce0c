"""Two stages against four: tokens/s that TensorRT-LLM reports, and what the simulated pipeline makes of them.

    python -m benchmarks.accuracy.pipeline_stages

Llama 3.3 70B in NVFP4 with an fp8 KV cache on 2 and on 4 RTX PRO 6000 Server, TP1, all requests at once
(NVIDIA/TensorRT-LLM, docs/source/performance/perf-overview.md, 00f3768, release 1.0). Nothing was fitted to them. The
ratio of the two is the pipeline's, whatever the kernels' speed: twice the stages, more than twice the KV cache. Slots
(2,048), tokens a step (8,192) and the number of requests (six pools full) are not reported and taken as given here.

While a prompt's next part waited for its own lane's decodes, prompts of 20,000 tokens scaled by 1.4 (measured 2.0);
given to the next batch, as engines do, by 1.8.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from servewise.ask.deploying import deploy
from servewise.batching.policies import Continuous
from servewise.deployment.capacity import KvCapacity, kv_capacity
from servewise.simulate.run import simulate
from servewise.steptime.api import estimator_for
from servewise.workload.request import Request

SLOTS, TOKENS_A_STEP, POOLS = 2048, 8192, 6


@dataclass(frozen=True, slots=True)
class Point:
    """Tokens in and out of each request; tokens/s out that were measured in two stages and in four."""

    prompt: int
    output: int
    two: float
    four: float


MEASURED = (
    Point(128, 128, 6172, 9641),
    Point(128, 2048, 4993, 7922),
    Point(1000, 1000, 3707, 5961),
    Point(2048, 128, 813, 1511),
    Point(2048, 2048, 2336, 3870),
    Point(20_000, 2000, 319, 630),
)


def tokens_per_s(point: Point, stages: int) -> float:
    """Tokens/s out of a server of that many stages that gets all its requests at once."""
    where = deploy(
        "llama-3.3-70b",
        "rtx-pro-6000-server",
        pp=stages,
        weights="nvfp4",
        kv="fp8",
        activations="nvfp4",
        engine="trtllm",
    )
    pool = kv_capacity(where)
    assert isinstance(pool, KvCapacity)
    held = pool.kv_tokens / (point.prompt + point.output / 2)
    count = max(1000, int(POOLS * min(SLOTS, held)))
    requests = [Request(serial, 0.0, point.prompt, point.output) for serial in range(count)]
    run = simulate(
        requests,
        Continuous(max_sequences=SLOTS, max_batched_tokens=TOKENS_A_STEP),
        estimator_for(where),
        blocks=pool.blocks,
        block_tokens=pool.block_tokens,
        deployment=where,
    )
    return count * point.output / max(run.requests.end_s)


def main() -> None:
    """Print the table."""
    print("| in | out | PP2 measured | simulated | PP4 measured | simulated | PP4 / PP2 measured | simulated |")
    print("|---|---|---|---|---|---|---|---|")
    errors = []
    for each in MEASURED:
        two, four = tokens_per_s(each, 2), tokens_per_s(each, 4)
        measured, found = each.four / each.two, four / two
        errors.append(abs(found / measured - 1))
        cells = (each.prompt, each.output, each.two, two, each.four, four)
        print("| " + " | ".join(f"{cell:,.0f}" for cell in cells) + f" | {measured:.2f} | {found:.2f} |")
    print(f"\nPP4 / PP2: median error {median(errors):.0%}, worst {max(errors):.0%} of {len(errors)}")


if __name__ == "__main__":
    main()
