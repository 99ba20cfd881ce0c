"""The slow and the fast clock bracket what the coefficients leave open."""

from __future__ import annotations

import pytest
from tests.plan.made import fixed, llama_13b, server

from servewise.deployment.deployment import Deployment
from servewise.hardware.catalogue import load_accelerator
from servewise.modelspec.load import load_model
from servewise.plan.bracket import bracket, seconds_per_request
from servewise.precision import FORMATS
from servewise.steptime.api import estimator_for
from servewise.steptime.draws import calibrated_draws
from servewise.steptime.shape import decode_shape

HALF = FORMATS["bf16"]
LLAMA = Deployment(
    model=load_model("llama-3.1-8b"),
    accelerator=load_accelerator("h100-sxm"),
    kv=HALF,
    activations=HALF,
    engine="vllm",
)


def test_a_request_takes_its_prompt_and_its_share_of_steps() -> None:
    """A batch of 32 at 2,048 tokens takes 39.8 ms, the study's figure; a token of one of them a 32nd of it.

    The pool holds 32 requests of 2,000 + 96 tokens; the prompt takes 2,000 x 26 GFLOP / 312 TFLOP/s.
    """
    one = server(llama_13b(), blocks=32 * 2096 // 16)

    assert seconds_per_request(one, 2000, 96) == pytest.approx(2000 * 26e9 / 312e12 + 96 * 0.0398 / 32, rel=0.002)


@pytest.mark.parametrize("estimator", ["calibrated", "served"])
def test_slow_and_fast_lie_around_the_fitted_clock(estimator: str) -> None:
    """A decode step by the slow clock takes longer than by the fitted one, by the fast clock less."""
    clock = estimator_for(LLAMA, estimator)
    found = bracket(LLAMA, estimator, server(clock), fixed(10, 1000, 200).requests, seed=0)
    assert found is not None
    shape = decode_shape(64, 1000)

    assert found.fast.seconds(shape) < clock.seconds(shape) < found.slow.seconds(shape)
    assert found.fast.seconds(shape) >= found.fast.step(shape).floor_s


def test_other_draws_fall_inside_as_often_as_said() -> None:
    """Of 400 draws from another seed, 95% lie between the two in time per request, give or take four deviations."""
    one, requests = server(estimator_for(LLAMA)), fixed(10, 1000, 200).requests
    found = bracket(LLAMA, "calibrated", one, requests, seed=0)
    assert found is not None
    low, high = (seconds_per_request(one.timed_by(clock), 1000, 200) for clock in (found.fast, found.slow))
    others = [
        seconds_per_request(one.timed_by(clock), 1000, 200) for clock in calibrated_draws(LLAMA, seed=1, count=400)
    ]
    inside = sum(low <= each <= high for each in others) / len(others)

    assert inside == pytest.approx(0.95, abs=0.07)


def test_the_ideal_clock_has_no_spread() -> None:
    """The ideal roofline has no coefficients, so nothing to draw."""
    assert bracket(LLAMA, "ideal", server(llama_13b()), fixed(10, 10, 10).requests, seed=0) is None
