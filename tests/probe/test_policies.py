"""The policies probe: the fit against known clocks, the drive against the simulator, keeping, and a tiny whole."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import nnls

torch = pytest.importorskip("torch")

from tests.engine.tiny import tiny_checkpoint  # noqa: E402
from torch import Tensor  # noqa: E402

from servewise.ask.probe_policies import probe_policies  # noqa: E402
from servewise.batching.policies import Continuous, Dynamic, Policy, Static  # noqa: E402
from servewise.conditions import Conditions  # noqa: E402
from servewise.engine.checkpoint import load_checkpoint  # noqa: E402
from servewise.engine.config import DecoderConfig  # noqa: E402
from servewise.engine.decoder.load import load_decoder  # noqa: E402
from servewise.engine.step import KvCache, Model, StepInput  # noqa: E402
from servewise.errors import InputError, UnknownName  # noqa: E402
from servewise.probe.ops.machine import Machine  # noqa: E402
from servewise.probe.policies.calibration import calibration_policies  # noqa: E402
from servewise.probe.policies.clock import clock_named  # noqa: E402
from servewise.probe.policies.comparison import capacity_per_s, compare_runs, keeps_up  # noqa: E402
from servewise.probe.policies.drive import Driven, TimedShape, drive, prompts_of  # noqa: E402
from servewise.probe.policies.fitted_steps import FittedSteps, errors_of, fit_steps  # noqa: E402
from servewise.probe.policies.kept import kept_run, kept_shapes  # noqa: E402
from servewise.probe.policies.least_squares import non_negative  # noqa: E402
from servewise.steptime.shape import StepShape, add_chunk, decode_shape, prefill_shape  # noqa: E402
from servewise.workload.arrivals import Poisson  # noqa: E402
from servewise.workload.lengths import Fixed, Lognormal  # noqa: E402
from servewise.workload.request import Request  # noqa: E402
from servewise.workload.synthetic import Synthetic  # noqa: E402

TRAFFIC = Synthetic(
    arrivals=Poisson(1.0), prompt_lengths=Lognormal(12, 0.5, 40), output_lengths=Lognormal(6, 0.7, 24), count=30
)
TRUE = FittedSteps(
    base_s=0.01,
    slopes=(0.001, 0.0005, 0.0005, 0.001, *[0.0003] * 9),
    per_row_s=0.0004,
    per_sequence_s=0.0,
    per_context_token_s=2e-6,
    per_pair_s=1e-7,
    per_chunk_token_s=0.0,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny random Llama."""
    torch.set_num_threads(1)
    return tiny_checkpoint(tmp_path_factory.mktemp("policies") / "tiny", hidden=32, layers=1)


@pytest.fixture(scope="module")
def model(folder: Path) -> Model:
    """Its decoder."""
    return load_decoder(load_checkpoint(folder))


@pytest.mark.parametrize("seed", range(5))
def test_non_negative_least_squares_is_scipys(seed: int) -> None:
    """The solution of Lawson and Hanson's problem is unique, and SciPy has it too."""
    rng = np.random.default_rng(seed)
    matrix, target = rng.normal(size=(30, 6)) * [1, 1e3, 1e-3, 1, 1, 1], rng.normal(size=30)
    ours, theirs = non_negative(matrix, target), nnls(matrix, target)[0]
    assert (ours >= 0).all()
    np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-9 * np.abs(theirs).max())


def _shapes() -> list[StepShape]:
    decodes = [decode_shape(batch, context) for batch in range(1, 9) for context in (10, 50, 200)]
    prompts = [prefill_shape(batch, tokens) for batch in (1, 3, 8) for tokens in (5, 30, 90)]
    mixed = [add_chunk(decode_shape(batch, 60), 0, tokens) for batch in (1, 4, 7) for tokens in (5, 40, 100)]
    return decodes + prompts + mixed


def test_the_fit_finds_a_clock_of_its_own_form() -> None:
    """Steps timed by a known clock are met exactly, and so are shapes that were not among them."""
    found = fit_steps([TimedShape(each, TRUE.seconds(each)) for each in _shapes()])
    for shape in (decode_shape(5, 120), prefill_shape(2, 60), add_chunk(decode_shape(3, 33), 0, 77)):
        assert found.seconds(shape) == pytest.approx(TRUE.seconds(shape), rel=1e-3)


def test_the_fit_is_without_bias_under_noise() -> None:
    """Under 20% noise the predicted sum of many steps is within 2% of the true one: latencies are sums."""
    rng = np.random.default_rng(0)
    steps = [TimedShape(each, TRUE.seconds(each) * rng.lognormal(-0.02, 0.2)) for each in _shapes() * 10]
    found = fit_steps(steps)
    fresh = [TimedShape(each, TRUE.seconds(each)) for each in _shapes()]
    assert errors_of(found, fresh)["sum_ratio"] == pytest.approx(1.0, abs=0.02)
    assert errors_of(found, fresh)["median_error"] < 0.03


def test_a_fitted_clock_keeps_the_contract_of_estimators() -> None:
    """A decode step is the largest of its lines, ``step`` says what ``seconds`` says, more tokens never take less."""
    for batch in range(1, 20):
        shape = decode_shape(batch, 70)
        line = max(
            each.base_s + each.per_context_token_s * shape.decode_context_tokens for each in TRUE.decode_lines(batch)
        )
        assert TRUE.seconds(shape) == pytest.approx(line, rel=1e-12)
        assert TRUE.step(shape).step_s == TRUE.seconds(shape)
        assert TRUE.seconds(decode_shape(batch + 1, 70)) >= TRUE.seconds(shape)
        assert TRUE.seconds(add_chunk(shape, 0, batch)) >= TRUE.seconds(shape)


def test_too_few_steps_are_not_fitted() -> None:
    """A clock from a handful of steps would be a guess."""
    with pytest.raises(InputError, match="too few"):
        fit_steps([TimedShape(decode_shape(1, 10), 0.01)] * 5)


class Paced:
    """The tiny model on a clock of its own, which moves by what a known clock says of each step, and by nothing else.

    Waiting moves it too: every look at it while nothing runs is a microsecond.
    """

    def __init__(self, model: Model, pace: FittedSteps) -> None:
        self._model, self._pace = model, pace
        self.config: DecoderConfig = model.config
        self.new_cache = model.new_cache
        self.now_s = 0.0

    def step(self, step: StepInput, cache: KvCache) -> Tensor:
        """The model's step, and its time on the clock."""
        shape = StepShape()
        for start, end, context in zip(step.query_starts, step.query_starts[1:], step.context_tokens, strict=False):
            if end - start == 1:
                one = decode_shape(1, context)
                shape = StepShape(*(a + b for a, b in zip(shape, one, strict=True)))
            else:
                shape = add_chunk(shape, context - (end - start), end - start)
        self.now_s += self._pace.seconds(shape._replace(logit_rows=len(step.rows_R)))
        return self._model.step(step, cache)

    def clock(self) -> float:
        """The time."""
        return self.now_s


def _driven(model: Model, policy: Policy, requests: Sequence[Request], monkeypatch: pytest.MonkeyPatch) -> Driven:
    paced = Paced(model, TRUE)

    def sleep(seconds: float) -> None:
        paced.now_s += seconds

    monkeypatch.setattr("servewise.probe.policies.drive.time.sleep", sleep)
    prompts = prompts_of(requests, model.config.vocabulary, 0)
    return drive(paced, policy, requests, prompts, blocks=200, clock=paced.clock)


@pytest.mark.parametrize(
    "policy",
    [Static(4), Dynamic(4, 0.3), Continuous(max_sequences=4, max_batched_tokens=32)],
    ids=lambda policy: str(policy.name),
)
@pytest.mark.parametrize("rate", [2.0, 20.0])
def test_a_driven_engine_on_a_known_clock_is_what_the_simulator_predicts(
    model: Model, policy: Policy, rate: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With step times that are exactly the clock's, every latency of every request is predicted exactly.

    Prompts have at least two tokens, so that the paced model can tell a prompt from a decoding row.
    """
    requests = [each._replace(prompt_tokens=each.prompt_tokens + 1) for each in TRAFFIC.at_rate(rate).requests(3)]
    driven = _driven(model, policy, requests, monkeypatch)
    compared = compare_runs(policy, rate, requests, driven, TRUE, 200, stable=True)
    assert compared.measured.completed == len(requests)
    for name, ratio in compared.ratios.items():
        assert ratio == pytest.approx(1.0, rel=1e-6), name
    assert compared.within(1e-6)


def test_a_machine_that_slowed_down_is_told_from_a_wrong_simulator(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a machine 1.3 times as slow as calibrated the prediction is off, and right at the speed it had."""
    requests = [each._replace(prompt_tokens=each.prompt_tokens + 1) for each in TRAFFIC.at_rate(20.0).requests(3)]
    policy = Continuous(max_sequences=4, max_batched_tokens=64)
    driven = _driven(model, policy, requests, monkeypatch)
    found = compare_runs(policy, 20.0, requests, driven, TRUE.slower(1 / 1.3), 200, stable=True)
    assert found.slowness == pytest.approx(1.3, rel=0.01)
    assert found.ratios["tpot_p50"] < 0.9
    assert not found.within(0.1)
    assert found.within_at_speed(0.02)


def test_no_reply_ends_early_and_none_is_too_long(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every request gets as many tokens as the traffic says, whatever the model would like to say."""
    requests = list(TRAFFIC.at_rate(50.0).requests(1))
    driven = _driven(model, Continuous(max_sequences=4, max_batched_tokens=64), requests, monkeypatch)
    made = dict(zip(driven.requests.id, driven.requests.output_tokens, strict=True))
    assert made == {each.serial: each.output_tokens for each in requests}
    assert sum(each.shape.prefill_tokens for each in driven.shapes) == sum(each.prompt_tokens for each in requests)


def test_saturation_is_where_queueing_theory_has_it() -> None:
    """One slot and equal requests of 0.1 s: ten a second is the capacity, nine is below saturation and eleven above."""
    flat = replace(TRUE, base_s=0.01, slopes=(0.0,) * 13, per_row_s=0.0, per_context_token_s=0.0, per_pair_s=0.0)
    traffic = replace(TRAFFIC, prompt_lengths=Fixed(8), output_lengths=Fixed(10))  # a prompt step and nine decode steps
    policy = Continuous(max_sequences=1, max_batched_tokens=64)
    assert capacity_per_s(policy, flat, traffic, 10) == pytest.approx(10.0, rel=0.01)
    assert keeps_up(policy, flat, traffic, 8.0, 10)
    assert not keeps_up(policy, flat, traffic, 11.0, 10)


def test_calibration_visits_every_batch_size_up_to_the_slots() -> None:
    """Bursts at 1, 2, 4, 8 and 12 slots for 12, and static batches for many prompts in one step."""
    found = calibration_policies(12, Continuous(max_sequences=12, max_batched_tokens=64))
    assert [each.slots for each in found if isinstance(each, Continuous)] == [1, 2, 4, 8, 12]
    assert [each.slots for each in found if isinstance(each, Static)] == [6, 12]


def test_the_undisturbed_clock_needs_one_thread() -> None:
    """Several threads wait for each other, so their waiting cannot be taken off the wall's time."""
    with pytest.raises(InputError, match="single CPU thread"):
        clock_named("undisturbed", Machine(device="cpu", title="", memory_bytes=1, threads=2))
    with pytest.raises(UnknownName, match="clock"):
        clock_named("sundial", Machine(device="cpu", title="", memory_bytes=1, threads=1))


def test_the_undisturbed_clock_never_runs_ahead_of_the_wall() -> None:
    """It stands still while the process waits for a core, and never goes faster than the wall's."""
    import time

    try:
        clock = clock_named("undisturbed", Machine(device="cpu", title="", memory_bytes=1, threads=1))
    except InputError:
        pytest.skip("this system does not tell how long a process waited")
    wall, own = time.perf_counter(), clock()
    until = time.process_time() + 0.2
    while time.process_time() < until:
        pass
    passed, own_passed = time.perf_counter() - wall, clock() - own
    assert 0.19 <= own_passed <= passed + 1e-3


CONDITIONS = Conditions(hardware="a", load="b", lengths="c", precision="d")


def test_a_kept_run_is_read_back_and_another_one_refused(
    model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second time nothing runs and the records are equal; other settings are told by name."""
    requests = list(TRAFFIC.at_rate(50.0).requests(1))
    driven = _driven(model, Static(4), requests, monkeypatch)

    def never() -> Driven:
        raise AssertionError("it is kept")

    first = kept_run(tmp_path, "static-50", {"seed": 1, "rate": 50.0}, CONDITIONS, 4, lambda: driven)
    again = kept_run(tmp_path, "static-50", {"seed": 1, "rate": 50.0}, CONDITIONS, 4, never)
    assert first is driven
    assert (again.requests.end_s, again.steps.seconds) == (driven.requests.end_s, driven.steps.seconds)
    with pytest.raises(InputError, match=r"rate 50.0, not 60.0"):
        kept_run(tmp_path, "static-50", {"seed": 1, "rate": 60.0}, CONDITIONS, 4, never)


def test_a_kept_calibration_is_read_back_and_a_damaged_one_refused(tmp_path: Path) -> None:
    """Shapes and seconds come back to the bit; rubbish is one clear line."""
    shapes = [TimedShape(decode_shape(2, 30), 0.1 + 0.2), TimedShape(prefill_shape(1, 9), 1 / 3)]
    kept_shapes(tmp_path, "calibration-0", {"seed": 1}, lambda: shapes)
    assert kept_shapes(tmp_path, "calibration-0", {"seed": 1}, list) == shapes
    path = tmp_path / "calibration-0.json"
    for text in (
        "",
        "[1]",
        '{"schema": "servewise.calibration/1", "settings": {"seed": 1}, "rows": [["x"]]}',
        "[" * 9**5,
    ):
        path.write_text(text)
        with pytest.raises(InputError, match="calibration"):
            kept_shapes(tmp_path, "calibration-0", {"seed": 1}, list)


def test_the_whole_probe_on_a_tiny_model_and_again_from_its_folder(folder: Path, tmp_path: Path) -> None:
    """Both policies are measured and predicted; the same command again gives the same document without running."""

    def ask() -> dict[str, object]:
        answer = probe_policies(
            str(folder), policies=["dynamic", "continuous"], rates=[200.0], requests=12, slots=2, dtype="float32",
            longest_prompt=12, longest_output=6, threads=1, run_dir=tmp_path / "runs",
        )  # fmt: skip
        found: dict[str, object] = json.loads(answer.dumps())
        return found

    first = ask()
    result = first["result"]
    assert isinstance(result, dict)
    assert [(row["policy"], row["rate_per_s"]) for row in result["rows"]] == [("dynamic", 200.0), ("continuous", 200.0)]
    for row in result["rows"]:
        assert row["measured"]["completed"] == row["predicted"]["completed"] == 12
        assert 0 < row["measured"]["utilisation"] <= 1
        assert row["within"] == (abs(row["e2e_p50_ratio"] - 1) <= 0.1 and abs(row["e2e_p95_ratio"] - 1) <= 0.1)
    assert ask() == first


def test_mistakes_are_one_line_each(folder: Path) -> None:
    """A policy, a rate, layers or lengths that cannot be are refused before anything runs."""
    with pytest.raises(UnknownName, match="policy"):
        probe_policies(str(folder), policies=["fifo"])
    with pytest.raises(InputError, match="rates"):
        probe_policies(str(folder), rates=[0.0])
    with pytest.raises(InputError, match="layers"):
        probe_policies(str(folder), layers=9)
    with pytest.raises(InputError, match="context of 512"):
        probe_policies(str(folder), longest_prompt=500, longest_output=500)
