"""An engine's settings as text."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servewise.ask.settings import pairs_of, settings_of
from servewise.ask.simulate import simulate
from servewise.batching.policies import Vllm
from servewise.errors import InputError


def test_text_is_read_as_the_field_wants_it() -> None:
    """Whole numbers, truth and words; dashes as engines write them on their command lines."""
    pairs = pairs_of(("max-num-seqs=12", "enable_chunked_prefill=false", "scheduling_policy=priority"))
    assert settings_of(Vllm, pairs) == {
        "max_num_seqs": 12,
        "enable_chunked_prefill": False,
        "scheduling_policy": "priority",
    }


@pytest.mark.parametrize(
    "texts", [("max_num_seqs",), ("=3",), ("a=",), ("max_num_seqs=1", "max-num-seqs=2"), ("max_num_seqs=1.5",)]
)
def test_what_is_no_setting_is_refused(texts: tuple[str, ...]) -> None:
    """A form that is none, a name given twice, a value that the field does not take."""
    with pytest.raises(InputError):
        settings_of(Vllm, pairs_of(texts))


def test_an_unknown_setting_names_the_nearest() -> None:
    """A slip of the pen is answered with what was meant."""
    with pytest.raises(InputError, match="max_num_seqs"):
        settings_of(Vllm, {"max_num_seq": "3"})


@given(st.lists(st.text(max_size=30), max_size=4))
def test_any_text_is_read_or_refused(texts: list[str]) -> None:
    """Whatever is typed: settings of the preset, or an InputError and no other."""
    with suppress(InputError):
        assert set(settings_of(Vllm, pairs_of(tuple(texts)))) <= {each.name for each in fields(Vllm)}


@pytest.mark.parametrize("more", [{"slots": 4}, {"reserve": True}, {"chunked": False}, {"prefix_cache": True}])
def test_a_preset_refuses_the_plain_policies_options(more: dict[str, object]) -> None:
    """What a preset calls by another name is refused, not ignored."""
    with pytest.raises(InputError, match="settings of its own"):
        simulate("llama-3.1-8b", "h100-sxm", workload="azure-conv", requests=10, policy="vllm", **more)  # type: ignore[arg-type]


def test_a_plain_policy_refuses_settings() -> None:
    """Settings without an engine's preset would be ignored: refused."""
    with pytest.raises(InputError, match="engine's preset"):
        simulate("llama-3.1-8b", "h100-sxm", workload="azure-conv", requests=10, settings={"max_num_seqs": 3})


def test_a_setting_matters() -> None:
    """One sequence at a time waits longer than the default's hundreds."""
    asked = {"workload": "azure-conv", "requests": 60, "policy": "vllm", "rate": 4.0, "seeds": 1}
    one = simulate("llama-3.1-8b", "h100-sxm", settings={"max_num_seqs": "1"}, **asked)  # type: ignore[arg-type]
    usual = simulate("llama-3.1-8b", "h100-sxm", **asked)  # type: ignore[arg-type]
    assert one.result["rows"][0]["ttft_s"]["p50"] > 5 * usual.result["rows"][0]["ttft_s"]["p50"]
    assert "1 sequences" in str(one.conditions.policy)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("vllm", "vLLM v1, 1024 sequences, 8192 tokens a step"),  # engine/arg_utils.py: an API server on an H100
        ("sglang", "SGLang, 2048 requests, .* chunks of 8192"),  # server_args.py: cards from 60 to 160 GiB
        ("trtllm", "TensorRT-LLM, 2048 sequences, 8192 tokens a step"),  # llmapi/llm_args.py
        ("llamacpp", "llama.cpp, 4 slots, 2048 tokens a step"),  # common/common.h, server.cpp
    ],
)
def test_an_engines_defaults_are_its_own(name: str, words: str) -> None:
    """Without settings each preset is what the engine's source says for that card."""
    asked = {"workload": "azure-conv", "requests": 20, "rate": 1.0, "seeds": 1}
    found = simulate("llama-3.1-8b", "h100-sxm", policy=name, **asked)  # type: ignore[arg-type]
    assert re.search(words, str(found.conditions.policy))


def test_a_setting_goes_to_the_presets_that_have_it() -> None:
    """Of two policies each takes its own; one may be named; what neither has is refused."""
    asked = {"workload": "azure-conv", "requests": 20, "rate": 1.0, "seeds": 1, "policy": ["vllm", "sglang"]}
    settings = {"max_num_seqs": "7", "sglang.max_running_requests": "9"}
    found = simulate("llama-3.1-8b", "h100-sxm", settings=settings, **asked)  # type: ignore[arg-type]
    assert re.search("7 sequences.*; SGLang, 9 requests", str(found.conditions.policy))
    for wrong in ({"n_parallel": "2"}, {"trtllm.max_batch_size": "2"}, {"sglang.max_num_seqs": "2"}):
        with pytest.raises(InputError, match="set: unknown"):
            simulate("llama-3.1-8b", "h100-sxm", settings=wrong, **asked)  # type: ignore[arg-type]


def test_a_limit_of_one_batch_follows_the_stages() -> None:
    """TensorRT-LLM's max_batch_size is that of one of the batches in flight, of which --pp says how many; vLLM's limit
    is of the whole server; another number of stages than the deployment's is refused."""
    asked = {"workload": "azure-conv", "requests": 20, "rate": 1.0, "seeds": 1, "pp": 2, "policy": ["trtllm", "vllm"]}
    settings = {"max_batch_size": "7", "max_num_seqs": "7"}
    found = simulate("llama-3.1-8b", "h100-sxm", settings=settings, **asked)  # type: ignore[arg-type]
    assert re.search("7 sequences, 8192 tokens a step, 2 such batches.*vLLM v1, 7 seq", str(found.conditions.policy))
    with pytest.raises(InputError, match="pipeline_parallel_size 4 is not the deployment's 2"):
        simulate("llama-3.1-8b", "h100-sxm", settings=settings | {"pipeline_parallel_size": "4"}, **asked)  # type: ignore[arg-type]
