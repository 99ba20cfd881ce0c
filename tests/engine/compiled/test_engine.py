"""The running engine on the compiled decoder, and the server that says so."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch
from tests.engine.compiled.targets import TARGETS, built
from tests.engine.tiny import tiny_checkpoint

from servewise.batching.policies import Continuous, Dynamic, Policy, Static
from servewise.engine.checkpoint import load_checkpoint
from servewise.engine.compiled.load import load_model
from servewise.engine.running.engine import Engine
from servewise.engine.sampling.sampler import Choice
from servewise.engine.sampling_settings import SamplingSettings
from servewise.engine.step import Model

POLICIES: list[tuple[Policy, int]] = [
    (Static(3), 60),
    (Dynamic(4, 0.0), 60),
    (Continuous(max_sequences=6, max_batched_tokens=13, prefix_cache=True), 60),
    (Continuous(max_sequences=6, max_batched_tokens=40, prefix_cache=True), 11),  # few blocks: preemptions
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny checkpoint."""
    torch.set_num_threads(1)
    built(TARGETS[0])
    return tiny_checkpoint(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def model(folder: Path) -> Model:
    """By the kernels."""
    return load_model(load_checkpoint(folder), kernels="compiled").model


def replies(model: Model, policy: Policy, blocks: int, prompts: list[list[int]]) -> tuple[list[list[Choice]], int]:
    """What each prompt draws with its own seed, log probabilities included; and how often one was preempted."""
    engine = Engine(model, policy, blocks=blocks, block_tokens=4)
    settings = [SamplingSettings(max_tokens=12, seed=seed, logprobs=3, ignore_end=True) for seed in range(len(prompts))]
    asked = [engine.submit(prompt, each) for prompt, each in zip(prompts, settings, strict=True)]
    engine.run_until_idle()
    return [each.choices for each in asked], sum(engine.requests.preemptions)


@pytest.mark.parametrize("at", range(len(POLICIES)))
def test_sampled_replies_are_the_same_bits_under_every_policy(model: Model, at: int) -> None:
    """Tokens and log probabilities equal those of one request at a time: batches, chunks, prefix hits, preemption."""
    rng = random.Random(7)
    common = rng.choices(range(3, 320), k=9)
    prompts = [common[: rng.randint(0, 9)] + rng.choices(range(3, 320), k=rng.randint(1, 9)) for _ in range(6)]
    alone, _ = replies(model, Static(1), 60, prompts)
    policy, blocks = POLICIES[at]
    together, preemptions = replies(model, policy, blocks, prompts)

    assert together == alone
    assert (preemptions > 0) == (blocks < 20)


@pytest.mark.parametrize(("kernels", "said"), [("auto", "compiled kernels, A"), ("torch", "PyTorch (asked for)")])
def test_the_server_says_what_computes(folder: Path, kernels: str, said: str) -> None:
    """The answer's conditions and its lines name the kernels."""
    pytest.importorskip("uvicorn")
    from servewise.ask.serve import ServeOptions, lines, service

    found = service(str(folder), ServeOptions(port=0, threads=1, kernels=kernels))
    found.server.listener.close()

    assert found.answer.result["kernels"].startswith(said)
    assert said in (found.answer.conditions.engine or "")
    assert any(said in line for line in lines(found.answer))
