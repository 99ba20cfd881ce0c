"""The most requests a second of a pipeline: as many as it holds, each for the time that it takes alone."""

from __future__ import annotations

import pytest

from servewise.batching.policies import Continuous, Static
from servewise.deployment.deployment import Deployment, Parallelism
from servewise.hardware.catalogue import load_accelerator
from servewise.modelspec.load import load_model
from servewise.plan.lengths import lengths_of
from servewise.plan.rate import held_at_most, most_per_s
from servewise.plan.server import Server
from servewise.plan.traffic import Traffic
from servewise.steptime.api import estimator_for
from servewise.workload.request import Request

MODEL = load_model("llama-3.1-8b")
SPLIT = Deployment(
    model=MODEL,
    accelerator=load_accelerator("l4"),
    kv=MODEL.dtype,
    activations=MODEL.dtype,
    engine="vllm",
    parallelism=Parallelism(pipeline=4),
)
CLOCK = estimator_for(SPLIT, "calibrated")
REQUESTS = [Request(serial, 0.0, 200, 50) for serial in range(40)]


def server(policy: Continuous | Static) -> Server:
    """Four stages of one accelerator each."""
    return Server(policy=policy, estimator=CLOCK, blocks=4000, block_tokens=16, deployment=SPLIT)


@pytest.mark.parametrize("slots", [1, 2, 4])
def test_a_pipeline_with_few_places_is_bound_by_the_time_that_each_takes(slots: int) -> None:
    """A request alone is run; so many at once complete so many in that time, and the bound is there to 5%."""
    one = server(Continuous(slots, 2048))
    alone_s = one.run(REQUESTS[:1]).requests.end_s[0]
    bound = most_per_s(one, lengths_of(Traffic(tuple(REQUESTS), 1.0), None))

    assert bound == pytest.approx(slots / alone_s, rel=0.05)
    assert len(REQUESTS) / max(one.run(REQUESTS).requests.end_s) <= bound


def test_whole_batches_are_held_one_a_stage() -> None:
    """A static batch of eight in each of four stages; a continuous batcher holds its slots in all lanes together."""
    assert held_at_most(server(Static(8))) == 32
    assert held_at_most(server(Continuous(8, 2048))) == 8
