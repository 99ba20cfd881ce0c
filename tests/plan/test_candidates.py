"""The candidates are the product of what may vary, less what no engine could run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from servewise.batching.policies import Continuous
from servewise.deployment.engine import engine_profile
from servewise.deployment.expert_load import EVEN
from servewise.errors import InputError
from servewise.hardware.catalogue import load_accelerator
from servewise.modelspec.load import load_model
from servewise.plan.candidates import Space, candidates, listed
from servewise.precision import FORMATS

A100, T4 = load_accelerator("a100-80gb"), load_accelerator("t4")
SPACE = Space(model=load_model("llama-2-13b"), accelerators=(A100,))


def test_the_product_of_all_that_varies() -> None:
    """Two counts x two weights x two KV formats x two limits are sixteen."""
    space = replace(
        SPACE,
        counts=(1, 2),
        weights=(None, FORMATS["int8"]),
        kv=(None, FORMATS["fp8"]),
        batched_tokens=(2048, 4096),
    )

    assert len(candidates(space)) == 16


def test_counts_split_into_tensor_and_pipeline() -> None:
    """Four accelerators over one or two stages are TP4 and TP2 PP2; three stages do not divide four."""
    found = candidates(replace(SPACE, counts=(4,), pipelines=(1, 2, 3)))

    assert [(each.deployment.parallelism.tensor, each.deployment.parallelism.pipeline) for each in found] == [
        (4, 1),
        (2, 2),
    ]


def test_limits_are_the_engines_where_none_are_given() -> None:
    """The policy runs with the engine's own default limits for that device, and the deployment is sized with them."""
    usual = engine_profile("vllm").batch_defaults(A100)
    found = candidates(replace(SPACE, counts=(1,)))[0]

    assert isinstance(found.policy, Continuous)
    assert found.policy.max_sequences == usual.max_sequences == found.deployment.limits.max_sequences
    assert found.policy.max_batched_tokens == usual.max_batched_tokens == found.deployment.limits.max_batched_tokens


def test_the_same_candidate_is_weighed_once() -> None:
    """A precision named twice, once as the checkpoint's own, is one candidate."""
    found = candidates(replace(SPACE, counts=(1,), weights=(None, SPACE.model.weights)))

    assert len(found) == 1


@pytest.mark.parametrize(
    "change", [{"accelerators": ()}, {"counts": (2,), "pipelines": (3,)}, {"counts": tuple(range(1, 200_000, 7))}]
)
def test_none_or_too_many_are_refused(change: dict[str, object]) -> None:
    """A space without candidates, or with more than can be weighed, is a mistake and is named as one."""
    with pytest.raises(InputError, match="candidate"):
        candidates(replace(SPACE, **change))  # type: ignore[arg-type]


def test_settings_vary_as_lists() -> None:
    """Two slots x two budgets x chunks or not x caches or not x two shares of memory are 32, each with a title."""
    space = replace(
        SPACE,
        counts=(1,),
        slots=(64, 128),
        batched_tokens=(2048, 4096),
        chunked_prefill=(True, False),
        prefix_cache=(False, True),
        memory_utilization=(0.8, 0.9),
    )
    found = candidates(space)

    assert len({each.title for each in found}) == len(found) == 32
    assert {each.deployment.limits.memory_utilization for each in found} == {0.8, 0.9}


def test_what_an_engine_refuses_is_counted() -> None:
    """vLLM refuses fewer tokens a step than sequences: of four combinations one is no candidate, and is told."""
    found = listed(replace(SPACE, counts=(1,), slots=(64, 512), batched_tokens=(256, 4096)))

    assert len(found.candidates) == 3
    ((why, count),) = found.refused.items()
    assert (count, "256" in why, "512" in why) == (1, True, True)
    with pytest.raises(InputError, match="fewer than max sequences"):
        listed(replace(SPACE, counts=(1,), slots=(512,), batched_tokens=(256,)))


def test_experts_are_spread_where_there_are_ranks() -> None:
    """Both ways on one and four accelerators are three candidates: one rank spreads nothing, and has no copies."""
    space = Space(
        model=load_model("qwen3-30b-a3b"),
        accelerators=(A100,),
        counts=(1, 4),
        expert=(False, True),
        expert_load=EVEN,
        redundant_experts=4,
    )
    found = [each.deployment for each in candidates(space)]

    assert [str(each.parallelism) for each in found] == ["TP1", "TP4", "TP4 EP EPLB+4"]
    assert {each.expert_load for each in found} == {EVEN}


def test_copies_that_do_not_divide_are_left_out() -> None:
    """128 experts and 2 copies stand on two ranks, not on four; where no ranks take them, that is the line."""
    space = Space(
        model=load_model("qwen3-30b-a3b"), accelerators=(A100,), counts=(2, 4), expert=(True,), redundant_experts=2
    )

    assert [each.accelerators for each in candidates(space)] == [2]
    assert list(listed(space).refused) == ["128 experts and 2 copies do not divide into 4 ranks"]
    with pytest.raises(InputError, match="do not divide into 4 ranks; 0, 4"):
        candidates(replace(space, counts=(4,)))
