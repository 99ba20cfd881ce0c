"""Engines' own schedulers as candidates, against what ``simulate`` runs under the same names."""

from __future__ import annotations

import pytest

from servewise.ask.deploying import deploy
from servewise.ask.plan import plan
from servewise.ask.serving import PolicyOptions, policy_named
from servewise.batching.policies import Continuous, LlamaCpp, Policy, Sglang, Static, TrtLlm, Vllm
from servewise.deployment.capacity import kv_capacity
from servewise.errors import InputError
from servewise.hardware.catalogue import load_accelerator
from servewise.modelspec.load import load_model
from servewise.plan.candidates import Space, candidates, listed
from servewise.plan.flags.every import TARGETS
from servewise.plan.flags.wanted import Wanted
from servewise.plan.presets import PRESETS, cuts_prompts, tokens_of

MODEL = "llama-3.1-8b"


def space(*policies: str, engines: tuple[str, ...] = ("vllm",), slots: int | None = None) -> Space:
    """One H100 under ``policies``."""
    device = (load_accelerator("h100-sxm"),)
    return Space(
        model=load_model(MODEL), accelerators=device, counts=(1,), engines=engines, policies=policies, slots=(slots,)
    )


@pytest.mark.parametrize("accelerator", ["h100-sxm", "l4"])
@pytest.mark.parametrize("name", PRESETS)
def test_the_same_server_as_simulate_runs(name: str, accelerator: str) -> None:
    """Policy and pool are those of ``simulate --policy NAME --engine NAME``: the engine's defaults on that device."""
    (found,) = candidates(
        Space(
            model=load_model(MODEL),
            accelerators=(load_accelerator(accelerator),),
            counts=(1,),
            policies=(name,),
            engines=(name,),
        )
    )
    simulated = deploy(MODEL, accelerator, engine=name)

    assert found.policy == policy_named(name, simulated, PolicyOptions())
    assert kv_capacity(found.deployment) == kv_capacity(simulated)


@pytest.mark.parametrize("name", PRESETS)
def test_limits_that_are_asked_for_have_the_engines_names(name: str) -> None:
    """``--slots 32`` is max_num_seqs, max_running_requests, max_batch_size and n_parallel."""
    (found,) = candidates(space(name, engines=(name,), slots=32))

    assert getattr(found.policy, PRESETS[name].sequences) == found.policy.slots == 32


def test_a_scheduler_runs_on_its_own_engine() -> None:
    """SGLang's on SGLang, also where only vLLM is named; where both are, each has its own and continuous has both."""

    def pairs(of: Space) -> set[tuple[str, str]]:
        return {(each.policy.name, each.deployment.engine) for each in candidates(of)}

    assert pairs(space("sglang")) == {("sglang", "sglang")}
    assert pairs(space("vllm", engines=("vllm-0.6", "sglang"))) == {("vllm", "vllm-0.6")}
    both = space("continuous", "vllm", "sglang", engines=("vllm", "sglang"))
    plain = {("continuous", "vllm"), ("continuous", "sglang")}
    assert pairs(both) == {*plain, ("vllm", "vllm"), ("sglang", "sglang")}


def test_what_an_engine_refuses_is_no_candidate() -> None:
    """vLLM does not start with more sequences than tokens a step: counted, with its own words."""
    whole = Space(
        model=load_model(MODEL),
        accelerators=(load_accelerator("h100-sxm"),),
        counts=(1,),
        policies=("vllm",),
        slots=(64, 512),
        batched_tokens=(256,),
    )
    found = listed(whole)

    assert [each.policy.slots for each in found.candidates] == [64]
    assert list(found.refused.values()) == [1]
    assert "max_num_batched_tokens (256) is below max_num_seqs (512)" in next(iter(found.refused))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("vllm", ["--max-num-seqs", "48", "--max-num-batched-tokens", "8192", "--enable-prefix-caching"]),
        ("sglang", ["--max-running-requests", "48", "--chunked-prefill-size", "8192"]),
        ("trtllm", ["--max_batch_size", "48", "--max_num_tokens", "8192"]),
        ("llamacpp", ["--parallel", "48", "--batch-size", "2048", "--kv-unified"]),
    ],
)
def test_the_launch_has_what_was_weighed(name: str, words: list[str]) -> None:
    """The engine's own command line states the limits of the scheduler, and no note takes them back."""
    (found,) = candidates(space(name, engines=(name,), slots=48))
    launch = TARGETS[name](Wanted(candidate=found, model="m", longest_tokens=4000))

    assert set(words) <= set(launch.argv)
    assert not [note for note in launch.notes if "cannot be asked for" in note or "schedules" in note]


def test_trtllms_config_has_its_scheduler() -> None:
    """GUARANTEED_NO_EVICT and whole prompts are its defaults: so they stand in the file, and no chunked prefill."""
    (found,) = candidates(space("trtllm", engines=("trtllm",)))
    config = TARGETS["trtllm"](Wanted(candidate=found, model="m", longest_tokens=4000)).files["trtllm.yaml"]

    assert "capacity_scheduler_policy: GUARANTEED_NO_EVICT" in config
    assert ("enable_chunked_prefill: true" in config) == TrtLlm().enable_chunked_prefill


def test_tokens_of_a_step() -> None:
    """By whichever name, and None where whole prompts or whole batches set it."""
    found: list[Policy] = [
        Continuous(8, 64),
        Vllm(8, 64),
        Sglang(8, 64),
        TrtLlm(8, 64),
        LlamaCpp(8, 64),
        Sglang(8, -1),
        Static(8),
    ]

    assert [tokens_of(each) for each in found] == [64] * 5 + [None, None]
    assert [cuts_prompts(each) for each in found][-2:] == [False, False]
    assert cuts_prompts(Vllm(8, 64))
    assert not cuts_prompts(Vllm(8, 64, enable_chunked_prefill=False))


def test_a_plan_weighs_it() -> None:
    """Ranked beside continuous batching, named in the conditions, launched for its engine; only its own options."""
    found = plan(
        MODEL, "h100-sxm", workload="chat", requests=60, slo="ttft_p95<=2s", counts=1, policy=["continuous", "sglang"]
    )
    titles = [row["deployment"]["title"] for row in found.result["ranking"]]

    assert sorted("sglang scheduler" in each for each in titles) == [False, True]
    assert found.conditions.engine == "vllm, sglang"
    with pytest.raises(InputError, match="chunked"):
        plan(MODEL, "h100-sxm", workload="chat", slo="ttft_p95<=2s", policy="vllm", chunked=False)
