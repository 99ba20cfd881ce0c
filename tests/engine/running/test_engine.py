"""The engine's requests, one by one and together: replies, ends, failures, records."""

from __future__ import annotations

import math

import pytest

pytest.importorskip("torch")

from tests.engine.running.fake import FakeModel, config, reply_alone

from servewise.batching.policies import Continuous, Dynamic, Policy, Static
from servewise.engine.running.engine import NOT_FINITE, Engine
from servewise.engine.running.generation import Emitted, Generation
from servewise.engine.sampling_settings import SamplingSettings
from servewise.errors import InputError
from servewise.records.columns import CANCELLED, COMPLETED, FAILED, REJECTED, UNFINISHED

POLICIES = (
    Static(3),
    Dynamic(3, 0.0),
    Continuous(3, 8),
    Continuous(3, 8, chunked_prefill=False, reserve_output=True),
    Continuous(3, 8, prefix_cache=True),
)
PROMPTS = [[1, 2, 3], list(range(5, 25)), [7], list(range(30)), [9, 9, 9, 9], [3, 1]]


def greedy(tokens: int) -> SamplingSettings:
    """Greedy settings for ``tokens`` tokens."""
    return SamplingSettings(max_tokens=tokens, temperature=0.0)


def engine_of(policy: Policy, model: FakeModel | None = None, blocks: int = 64, block_tokens: int = 4) -> Engine:
    """An engine on the fake model, its clock the model's."""
    model = model or FakeModel()
    return Engine(model, policy, blocks=blocks, block_tokens=block_tokens, clock=model.clock)


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_every_reply_is_the_one_it_would_be_alone(policy: Policy) -> None:
    """Six prompts of different lengths, together: each gets the tokens that the model gives without any engine."""
    engine = engine_of(policy)
    handles = [engine.submit(prompt, greedy(4 + 3 * index)) for index, prompt in enumerate(PROMPTS)]
    engine.run_until_idle()

    for index, (prompt, handle) in enumerate(zip(PROMPTS, handles, strict=True)):
        assert handle.output == reply_alone(prompt, 4 + 3 * index)
        assert (handle.status, handle.finish_reason) == (COMPLETED, "length")
    assert engine.pool.counts()[1] == 0
    assert engine.pool.free + engine.pool.kept_blocks == 64


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_an_end_token_ends_the_reply_early(policy: Policy) -> None:
    """The reply stops at the model's end token, which counts as its last token; ``ignore_end`` goes on."""
    end = reply_alone([1, 2, 3], 6)[5]
    engine = engine_of(policy, FakeModel(config(end=(end,))))
    stopped = engine.submit([1, 2, 3], greedy(30))
    going_on = engine.submit([1, 2, 3], SamplingSettings(max_tokens=30, temperature=0.0, ignore_end=True))
    engine.run_until_idle()

    assert stopped.output == reply_alone([1, 2, 3], 30, end=(end,))
    assert stopped.finish_reason == "stop"
    assert going_on.output == reply_alone([1, 2, 3], 30)
    assert engine.pool.counts()[1] == 0


def test_a_continuous_batch_frees_an_early_end_at_once() -> None:
    """The step in which the end token comes gives its blocks back."""
    end = reply_alone([1, 2, 3], 3)[2]
    engine = engine_of(Continuous(3, 8), FakeModel(config(end=(end,))))
    engine.submit([1, 2, 3], greedy(30))
    for _ in range(3):
        outcome = engine.step()

    assert [each.finish_reason for each in outcome.ended] == ["stop"]
    assert engine.pool.free == 64


def test_a_static_batch_holds_the_early_end_until_its_longest() -> None:
    """The first reply stops at its 3rd token; its row is computed on, its 5 tokens unchanged, until the 6th step."""
    end = reply_alone([1, 2, 3], 3)[2]
    model = FakeModel(config(end=(end,)))
    engine = engine_of(Static(2), model)
    short = engine.submit([1, 2, 3], greedy(30))
    longer = engine.submit([8], SamplingSettings(max_tokens=6, temperature=0.0, ignore_end=True))
    engine.run_until_idle()

    assert (len(short.output), short.end_s, longer.end_s) == (3, 6.0, 6.0)
    assert model.contexts == [(3, 1), (4, 2), (5, 3), (4, 5), (5, 5), (6, 5)]  # the decoding row first, then the held


def test_the_last_early_end_releases_a_static_batch() -> None:
    """When every member has ended early, no further step runs."""
    end = reply_alone([1, 2, 3], 3)[2]
    engine = engine_of(Static(2), FakeModel(config(end=(end,))))
    both = [engine.submit([1, 2, 3], greedy(30)) for _ in range(2)]
    engine.run_until_idle()

    assert [each.end_s for each in both] == [3.0, 3.0]
    assert len(engine.steps) == 3


def test_nan_logits_fail_that_request_alone() -> None:
    """Two of five prompts make the logits NaN: those fail with the reason, the others get their replies."""
    engine = engine_of(Continuous(5, 64, prefix_cache=True), FakeModel(poison=39))
    prompts = [[1, 2, 3], [4, 39, 6, 7, 8], [5], [39], list(range(20))]
    handles = [engine.submit(prompt, greedy(3)) for prompt in prompts]
    engine.run_until_idle()

    for handle, prompt in zip(handles, prompts, strict=True):
        fails = 39 in prompt
        assert handle.output == ([] if fails else reply_alone(prompt, 3))
        assert handle.status == (FAILED if fails else COMPLETED)
        assert handle.error == (NOT_FINITE if fails else "")
    assert engine.requests.errors[list(engine.requests.id).index(1)] == NOT_FINITE


def test_blocks_of_a_failed_request_are_never_found_again() -> None:
    """The failed prompt's blocks are not in the prefix cache; a sound prompt's are."""
    engine = engine_of(Continuous(2, 64, prefix_cache=True), FakeModel(poison=39))
    engine.submit([39] * 12, greedy(2))
    engine.submit([1] * 12, greedy(2))
    engine.run_until_idle()
    again = [engine.submit([39] * 12, greedy(2)), engine.submit([1] * 12, greedy(2))]
    engine.run_until_idle()

    assert [each.first_cached_tokens for each in again] == [0, 8]


@pytest.mark.parametrize(
    ("prompt", "settings", "message"),
    [
        ([], greedy(1), "prompt is empty"),
        ([1, 40], greedy(1), "outside the model's vocabulary of 40"),
        ([-1], greedy(1), "outside the model's vocabulary"),
        ([2**70], greedy(1), "outside the model's vocabulary"),
        ([1] * 64, greedy(1), "the prompt has 64 tokens, the model's context 64"),
        ([1] * 20, greedy(30), "needs KV for 50 tokens, the pool holds 40"),
        ([1], SamplingSettings(stop=("x",)), "stop strings need a tokenizer"),
    ],
)
def test_a_request_that_can_never_run_is_refused_alone(
    prompt: list[int], settings: SamplingSettings, message: str
) -> None:
    """One clear line, a rejected row in the records, and the request beside it runs."""
    engine = engine_of(Continuous(2, 64, prefix_cache=True), FakeModel(config(context=64)), blocks=10)
    fine = engine.submit([1, 2], greedy(2))
    with pytest.raises(InputError, match=message):
        engine.submit(prompt, settings)
    engine.run_until_idle()

    assert fine.output == reply_alone([1, 2], 2)
    assert list(engine.requests.status) == [REJECTED, COMPLETED]
    assert message in engine.requests.errors[0]


def test_a_serial_is_one_requests_own() -> None:
    """Chosen serials are kept, the next ones follow them; one that is under way is refused."""
    engine = engine_of(Continuous(2, 64))
    first, second = engine.submit([1], greedy(2), serial=5), engine.submit([1], greedy(2))
    with pytest.raises(InputError, match="serial 5 is under way"):
        engine.submit([1], greedy(2), serial=5)

    assert (first.serial, second.serial) == (5, 6)
    assert engine.submit([1], greedy(2), serial=3).serial == 3
    assert engine.submit([1], greedy(2)).serial == 7


def test_a_reply_ends_at_the_context() -> None:
    """A prompt of 10 in a context of 16 gets 6 tokens, whatever ``max_tokens`` says."""
    engine = engine_of(Continuous(2, 64), FakeModel(config(context=16)))
    handle = engine.submit([1] * 10, greedy(100))
    engine.run_until_idle()

    assert (len(handle.output), handle.finish_reason) == (6, "length")


@pytest.mark.parametrize("steps", [0, 1, 2, 5])
def test_a_cancelled_request_frees_its_blocks_at_once(steps: int) -> None:
    """Waiting, in its prompt, or decoding: after ``cancel`` all blocks are free, and a second one finds nothing."""
    engine = engine_of(Continuous(2, 8))
    handle = engine.submit([1] * 20, greedy(20))
    for _ in range(steps):
        engine.step()

    assert engine.cancel(handle.serial)
    assert engine.pool.counts() == (64, 0, 0)
    assert engine.pool.free == 64
    assert (handle.status, handle.finish_reason) == (CANCELLED, "cancelled")
    assert not engine.cancel(handle.serial)
    assert engine.idle


def test_a_callback_may_cancel_and_submit() -> None:
    """The first request cancels the second at its 2nd token and sends a third, which runs to its end."""
    engine = engine_of(Continuous(3, 64))
    third: list[Generation] = []

    def meddle(event: Emitted) -> None:
        if len(event.generation.choices) == 2:
            engine.cancel(other.serial)
            third.append(engine.submit([5, 5], greedy(2)))

    first = engine.submit([1], greedy(3), on_token=meddle)
    other = engine.submit([2], greedy(9))
    engine.run_until_idle()

    assert (first.status, other.status, third[0].status) == (COMPLETED, CANCELLED, COMPLETED)
    assert third[0].output == reply_alone([5, 5], 2)


def test_tokens_are_told_in_order_with_the_reason_last() -> None:
    """Events carry the tokens one by one; only the last has a finish reason; then the end is told once."""
    engine = engine_of(Continuous(3, 64))
    events: list[Emitted] = []
    ends: list[Generation] = []
    handle = engine.submit([1, 2], greedy(4), on_token=events.append, on_end=ends.append)
    engine.run_until_idle()

    assert [each.choice.token for each in events] == handle.output
    assert [each.finish_reason for each in events] == [None, None, None, "length"]
    assert ends == [handle]


def test_a_step_that_failed_can_be_tried_again() -> None:
    """An exception from the model changes nothing: the next step does the same work, and the reply is right."""
    model = FakeModel()
    engine = engine_of(Continuous(3, 8), model, blocks=20)
    handles = [engine.submit([1] * 13, greedy(9)), engine.submit([2] * 3, greedy(9))]
    sound = model.step
    for number in range(30):
        if number % 3 == 1:
            model.step = _broken  # type: ignore[method-assign, assignment]
            if not engine.idle:
                with pytest.raises(MemoryError):
                    engine.step()
            model.step = sound  # type: ignore[method-assign]
        engine.step()

    assert [each.output for each in handles] == [reply_alone([1] * 13, 9), reply_alone([2] * 3, 9)]
    assert engine.pool.counts() == (20, 0, 0)


def test_a_request_cancelled_after_a_failed_step_stays_cancelled() -> None:
    """A static batch's first step fails, one member is cancelled, the step is tried again: it gets no token."""
    model = FakeModel()
    engine = engine_of(Static(2), model)
    handles = [engine.submit([1], greedy(3)), engine.submit([2], greedy(9))]
    sound = model.step
    model.step = _broken  # type: ignore[method-assign, assignment]
    with pytest.raises(MemoryError):
        engine.step()
    model.step = sound  # type: ignore[method-assign]
    engine.cancel(1)
    engine.run_until_idle()

    assert [each.status for each in handles] == [COMPLETED, CANCELLED]
    assert handles[1].output == []
    assert handles[0].end_s == 3.0
    assert list(engine.requests.id) == [1, 0]
    assert engine.pool.counts() == (64, 0, 0)


def _broken(*_: object) -> object:
    raise MemoryError


def test_records_hold_each_tokens_time() -> None:
    """With 1 s a step: admitted at 0, tokens at 1, 2, 3, ended at 3; three steps of 1 s, all of it the model's."""
    engine = engine_of(Continuous(3, 64))
    engine.submit([1, 2], greedy(3))
    engine.run_until_idle()
    requests, steps = engine.requests, engine.steps

    assert (requests.admitted_s[0], requests.first_token_s[0], requests.end_s[0]) == (0.0, 1.0, 3.0)
    assert requests.token_times is not None
    assert list(requests.token_times.times) == [1.0, 2.0, 3.0]
    assert list(steps.seconds) == list(steps.model_s) == [1.0, 1.0, 1.0]
    assert list(steps.plan_s) == list(steps.sample_s) == [0.0, 0.0, 0.0]


def test_what_is_abandoned_is_recorded_as_unfinished() -> None:
    """A run that stops early records what still waited or ran, without an end."""
    engine = engine_of(Continuous(1, 64))
    for _ in range(3):
        engine.submit([1], greedy(5))
    engine.step()
    engine.abandon()

    assert list(engine.requests.status) == [UNFINISHED] * 3
    assert all(math.isnan(each) for each in engine.requests.end_s)
    assert engine.pool.free == 64


def test_seeds_that_the_engine_draws_are_reported_and_repeat_the_reply() -> None:
    """A request without a seed gets one; giving that seed again gives the same reply."""
    engine = engine_of(Continuous(4, 64))
    first = engine.submit([1, 2], SamplingSettings(max_tokens=20))
    other = engine.submit([1, 2], SamplingSettings(max_tokens=20))
    engine.run_until_idle()
    again = engine.submit([1, 2], SamplingSettings(max_tokens=20, seed=first.settings.seed))
    engine.run_until_idle()

    assert first.settings.seed != other.settings.seed
    assert first.output == again.output != other.output
