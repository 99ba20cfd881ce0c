"""No simulated run beats the bounds by which a plan prunes, whatever the policy, the load, the model or the device."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.batching.strategies import first_come, presets
from tests.plan.made import llama_13b
from tests.properties.test_step_floor import deployments, shapes

from servewise.batching.policies import Continuous, Dynamic, Policy, Sglang, Static, Vllm
from servewise.batching.speculative.acceptance import Acceptance
from servewise.deployment.deployment import Deployment, Parallelism
from servewise.deployment.expert_load import USUAL, Drawn
from servewise.hardware.catalogue import load_accelerator
from servewise.metrics.summary import summarise
from servewise.modelspec.load import load_model
from servewise.plan.bounds import least_latencies
from servewise.plan.lengths import hardest, lengths_of
from servewise.plan.rate import most_per_s
from servewise.plan.server import Server
from servewise.plan.traffic import Traffic
from servewise.plan.weighing import why_refused
from servewise.records.columns import COMPLETED
from servewise.simulate.speculating.drafters import DraftModel
from servewise.simulate.speculating.speculation import Speculation, fixed
from servewise.steptime.api import calibrated_roofline, estimator_for
from servewise.steptime.estimator import Estimator
from servewise.steptime.ideal import two_term
from servewise.steptime.table import TableEstimator
from servewise.steptime.table_file import MeasuredStep
from servewise.workload.request import Request

SLACK = 1 - 1e-9
HASH = 32
DRAFT = DraftModel(two_term(weight_bytes=1e9, kv_bytes_per_token=1e4, flops_per_token=1e8, bandwidth=1e12, peak=1e14))


def deployment(model: str, accelerator: str, tensor: int = 1, pipeline: int = 1) -> Deployment:
    """A model on accelerators as vLLM runs it."""
    spec, split = load_model(model), Parallelism(tensor=tensor, pipeline=pipeline)
    device, half = load_accelerator(accelerator), spec.dtype
    return Deployment(model=spec, accelerator=device, kv=half, activations=half, engine="vllm", parallelism=split)


def spread(copies: int | None, load: Drawn, data: int = 1) -> Deployment:
    """A mixture's experts on 8 ranks, one of them fuller than the others."""
    split = Parallelism(tensor=8 // data, data=data, expert=True, redundant_experts=copies)
    return replace(deployment("qwen3-30b-a3b", "h100-sxm"), parallelism=split, expert_load=load)


WHOLE = [
    deployment("llama-3.1-8b", "h100-sxm"),
    deployment("llama-3.1-8b", "t4", tensor=8),  # slow links: messages are slow from some size on
    deployment("gpt-oss-120b", "a100-80gb", tensor=2),  # windows and experts
    spread(None, Drawn(0.05)),
    spread(16, USUAL, data=2),
]
SPLIT = [deployment("llama-3.1-8b", "l4", pipeline=2), deployment("qwen3-32b", "a100-80gb", pipeline=4)]
# Measured steps that fall where more is computed: bounds count with the floor alone.
TABLE = TableEstimator(
    [
        MeasuredStep("decode", 1, 100, 0.02),
        MeasuredStep("decode", 8, 100, 0.008),
        MeasuredStep("prefill", 1, 100, 0.01),
    ],
    calibrated_roofline(WHOLE[0]),
    "made up",
)
CLOCKS: list[Estimator] = [
    TABLE,
    llama_13b(),
    *(estimator_for(each, kind) for each in WHOLE for kind in ("calibrated", "served")),
]

plain: st.SearchStrategy[Policy] = st.one_of(
    st.builds(Static, st.integers(1, 8)),
    st.builds(Dynamic, st.integers(1, 8), st.floats(0.01, 1.0)),
    first_come(tokens=(8, 300)),
)
large: st.SearchStrategy[Policy] = st.sampled_from(
    [Vllm(256, 8192), Vllm(64, 512, long_prefill_token_threshold=200), Sglang(64, 2048)]
)
policies: st.SearchStrategy[Policy] = plain | presets | large
pools = st.none() | st.integers(20, 80)


@st.composite
def traffics(draw: st.DrawFn) -> Traffic:
    """Up to 25 requests in bursts, some with a prefix of whole hash blocks in common."""
    now, found = 0.0, []
    longest = draw(st.sampled_from([100, 300]))
    for serial in range(draw(st.integers(2, 25))):
        prompt, family = draw(st.integers(1, longest)), 1000 * draw(st.integers(0, 2))
        hashes = tuple(range(family, family + prompt // HASH))
        found.append(Request(serial, now, prompt, draw(st.integers(1, 40)), hashes))
        now += draw(st.sampled_from([0.0, 0.0, 0.01, 0.3, 3.0]))
    return Traffic(tuple(found), 1.0)


def assert_bounded(server: Server, traffic: Traffic) -> None:
    """Each percentile and mean is at or above its bound, and completions a second at or below theirs.

    What a policy would refuse is said before, and what is not refused completes.
    """
    run, lengths = server.run(traffic.requests), lengths_of(traffic, server.hash_block_tokens)
    refused = any(status != COMPLETED for status in run.requests.status)
    assert refused == bool(why_refused(server, lengths))
    if refused:
        return
    found, least = summarise(run.requests, run.steps, slots=run.slots), least_latencies(server, lengths)
    for metric in ("ttft", "tpot", "e2e"):
        values = least[metric]
        for name, share in (("p50", 50), ("p90", 90), ("p99", 99)):
            assert not len(values) or getattr(getattr(found, metric), name) >= np.percentile(values, share) * SLACK
        assert not len(values) or getattr(found, metric).mean >= values.mean() * SLACK
    assert math.isnan(found.itl.p50) or found.itl.p50 >= least["itl"][0] * SLACK
    assert len(traffic.requests) / found.duration_s <= most_per_s(server, lengths) / SLACK


@settings(max_examples=150, deadline=None)
@given(policies, st.sampled_from(CLOCKS), traffics(), pools, st.booleans())
def test_no_run_beats_the_bounds(
    policy: Policy, clock: Estimator, traffic: Traffic, blocks: int | None, hashed: bool
) -> None:
    """For every policy and preset, with and without prefix caches, chunks, and pools so short that some go back."""
    hashes = HASH if hashed else None
    assert_bounded(
        Server(policy=policy, estimator=clock, blocks=blocks, block_tokens=16, hash_block_tokens=hashes), traffic
    )


@settings(max_examples=60, deadline=None)
@given(policies, st.sampled_from(SPLIT), traffics(), st.integers(20, 80))
def test_no_pipeline_beats_the_bounds(policy: Policy, split: Deployment, traffic: Traffic, blocks: int) -> None:
    """Parts of a prompt follow each other through the stages, and several batches are under way at once."""
    clock = estimator_for(split, "calibrated")
    assert_bounded(Server(policy=policy, estimator=clock, blocks=blocks, block_tokens=16, deployment=split), traffic)


@settings(max_examples=60, deadline=None)
@given(
    presets | first_come(),
    traffics(),
    st.integers(0, 5),
    st.floats(0, 1),
)
def test_no_speculation_beats_the_bounds(policy: Policy, traffic: Traffic, k: int, accepted: float) -> None:
    """Several tokens a step, of which any share stands."""
    clock = two_term(weight_bytes=1e10, kv_bytes_per_token=1e5, flops_per_token=1e9, bandwidth=1e12, peak=1e14)
    speculation = Speculation(clock, DRAFT, Acceptance((accepted,)), fixed(k))
    server = Server(policy=policy, estimator=clock, blocks=None, block_tokens=16, speculation=speculation)

    assert_bounded(server, traffic)


@settings(max_examples=100, deadline=None)
@given(deployments(), st.sampled_from(["calibrated", "served", "ideal"]), st.data())
def test_a_step_with_less_of_everything_takes_no_longer(one: Deployment, kind: str, data: st.DataObject) -> None:
    """What the bounds ask of an estimator: it never falls in any field, nor when more sequences read the same KV."""
    clock = estimator_for(one, kind)
    shape = data.draw(shapes(clock.window_tokens))
    before = clock.seconds(shape) * SLACK
    there = {"decode": shape.decode_sequences, "prefill": shape.prefill_sequences}
    for name in (each for each in shape._fields if there.get(each.partition("_")[0])):
        more = shape._replace(**{name: getattr(shape, name) + data.draw(st.integers(1, 5000))})
        assert before <= clock.seconds(more), name
    assert before <= clock.seconds(shape._replace(logit_rows=shape.logit_rows + 1))


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1))
def test_the_hardest_stand_for_all(pairs: list[tuple[int, int]]) -> None:
    """Each request is no longer in prompt and in output than one of the hardest, which are some of them."""
    requests = [Request(serial, 0.0, prompt, output) for serial, (prompt, output) in enumerate(pairs)]
    kept = hardest(requests)

    assert set(kept) <= set(requests)
    for each in requests:
        assert any(each.prompt_tokens <= one.prompt_tokens and each.output_tokens <= one.output_tokens for one in kept)


def test_the_bound_on_the_rate_is_no_guess_at_infinity() -> None:
    """The study's server, 8 slots: steps of 13 ms with 8 tokens, 100 tokens a request: 6.2 requests a second at most.

    With prompts of 2,048 tokens alone, 171 ms each: 5.9. To 10%, the width of a range of steps.
    """
    answers = Traffic(tuple(Request(serial, float(serial), 1, 101) for serial in range(4)), 1.0)
    prompts = Traffic(tuple(Request(serial, float(serial), 2048, 1) for serial in range(4)), 1.0)
    server = Server(policy=Continuous(8, 8192), estimator=llama_13b(), blocks=4000, block_tokens=16)

    assert most_per_s(server, lengths_of(answers, None)) == pytest.approx(8 / 100 / 0.013, rel=0.1)
    assert most_per_s(server, lengths_of(prompts, None)) == pytest.approx(1 / 0.1707, rel=0.1)
