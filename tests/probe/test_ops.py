"""The survey of a machine: counts by hand, files that the other rooms read, and one small survey as a whole."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from tests.engine.tiny import tiny_checkpoint  # noqa: E402
from torch import Tensor  # noqa: E402

from servewise.ask.probe_ops import SMOKE, probe_ops  # noqa: E402
from servewise.ask.steptime import steptime  # noqa: E402
from servewise.engine.checkpoint import load_checkpoint  # noqa: E402
from servewise.engine.decoder.load import load_decoder  # noqa: E402
from servewise.engine.step import StepInput  # noqa: E402
from servewise.errors import InputError, UnknownName  # noqa: E402
from servewise.hardware.catalogue import load_accelerator  # noqa: E402
from servewise.modelspec.load import load_model  # noqa: E402
from servewise.probe.ops.accelerator_file import Measured, accelerator_toml  # noqa: E402
from servewise.probe.ops.gemms import gemm_operations  # noqa: E402
from servewise.probe.ops.machine import Machine, this_machine, waited_s  # noqa: E402
from servewise.probe.ops.model_shapes import attention_operations, product_operations, products_of  # noqa: E402
from servewise.probe.ops.operation import Operation  # noqa: E402
from servewise.probe.ops.streams import stream_operations  # noqa: E402
from servewise.probe.ops.survey import Timed, reached_bandwidth, reached_peak  # noqa: E402
from servewise.probe.ops.timing import Sample, Timing, sample, timing_of  # noqa: E402
from servewise.probe.steps import StepKey, TimedStep, step_keys, step_of, table_csv, time_steps  # noqa: E402
from servewise.steptime.table_file import load_table  # noqa: E402

MIB = 2**20
CPU = Machine(device="cpu", title='Chip "X" (virtual)', memory_bytes=8 * 2**30, threads=1)
EVEN = Timing(median_s=0.5, p10_s=0.4, p90_s=0.6, samples=5, disturbed=0, clean=True)


def test_a_disturbed_sample_does_not_move_the_median() -> None:
    """Samples whose threads waited for a core are set aside, whatever they took, and are counted."""
    samples = [Sample(1.0, 0.0), Sample(2.0, 0.01), Sample(3.0, 0.0), Sample(90.0, 0.7), Sample(80.0, 0.03)]
    found = timing_of(samples)
    assert (found.median_s, found.samples, found.disturbed, found.clean) == (2.0, 3, 2, True)


def test_the_least_disturbed_third_stands_where_all_were_disturbed() -> None:
    """With fewer than three undisturbed samples the least disturbed ones count, and the timing says so."""
    found = timing_of([Sample(float(each), 0.1 * each) for each in range(1, 13)])
    assert (found.median_s, found.samples, found.clean) == (2.5, 4, False)  # the four that waited least: 1, 2, 3, 4


def test_samples_of_a_clock_that_nobody_disturbs_all_count() -> None:
    """Where the system does not tell who waited, every sample counts."""
    assert timing_of([Sample(float(each), float("nan")) for each in range(1, 6)]).median_s == 3.0


def test_a_known_delay_is_timed() -> None:
    """A call that busy-waits for 2 ms is timed at 2 ms or a little more."""
    import time

    def busy() -> None:
        until = time.perf_counter() + 0.002
        while time.perf_counter() < until:
            pass

    machine = Machine(device="cpu", title="", memory_bytes=1, threads=2)
    assert 0.002 <= min(each.call_s for each in sample(busy, machine, 5)) < 0.0025


def test_waiting_for_a_core_never_shrinks() -> None:
    """The seconds that threads waited for a core so far are a running sum, or not known."""
    before, after = waited_s(), waited_s()
    assert (before is None and after is None) or (before is not None and after is not None and 0 <= before <= after)


@pytest.mark.parametrize("device", ["tpu", "cuda:99", "cpu:1", "cuda:x", ""])
def test_a_device_that_is_not_there_is_refused(device: str) -> None:
    """The error names the devices that are."""
    with pytest.raises(InputError, match="one of cpu"):
        this_machine(device)


def test_threads_beyond_the_cores_are_refused() -> None:
    """More threads than cores measure the scheduler, and fewer than one nothing."""
    for threads in (0, 10_000):
        with pytest.raises(InputError, match="cores here"):
            this_machine("cpu", threads)


def test_streams_count_what_stream_counts() -> None:
    """A copy moves its source twice, a read once; every call of a stream moves one piece of 16 MiB (McCalpin 1995)."""
    found = list(stream_operations([64 * MIB], ["float32"], "cpu"))
    assert [(each.kind, each.moved_bytes, each.shape["working_set_bytes"]) for each in found] == [
        (kind, 16 * MIB, 64 * MIB) for kind in ("read", "copy", "gemv")
    ]
    assert found[2].flops == 2 * 16 * MIB / 4  # a multiplication and an addition for each float32 weight


def test_a_copy_goes_round_the_whole_working_set() -> None:
    """After as many calls as there are pieces, every piece of the target holds its source."""
    copy = next(each for each in stream_operations([32 * MIB], ["float32"], "cpu") if each.kind == "copy").prepare()
    closure = dict(zip(copy.__code__.co_freevars, (cell.cell_contents for cell in copy.__closure__ or ()), strict=True))
    copy()
    copy()
    pairs = closure["pairs"]
    for _ in range(2):
        source, target = next(pairs)
        assert torch.equal(source, target)


def test_square_products_count_two_flops_a_multiplication() -> None:
    """n x n times n x n takes 2 n^3 FLOPs."""
    assert [each.flops for each in gemm_operations([128, 256], ["bfloat16"], "cpu")] == [2 * 128**3, 2 * 256**3]


def test_products_of_llama_2_7b_by_hand() -> None:
    """Llama 2 7B: hidden 4,096, 32 heads of 128 with as many KV heads, intermediate 11,008, vocabulary 32,000."""
    assert [tuple(each) for each in products_of(load_model("llama-2-7b"))] == [
        ("qkv", 4096, 3 * 4096, 32),
        ("output", 4096, 4096, 32),
        ("gate+up", 4096, 2 * 11008, 32),
        ("down", 11008, 4096, 32),
        ("head", 4096, 32000, 1),
    ]


def test_products_hold_all_parameters_but_norms_and_embedding() -> None:
    """Inputs x outputs x layers over all products is the published total without embedding and norms."""
    model = load_model("llama-3.1-8b")
    weights = sum(each.inputs * each.outputs * each.layers for each in products_of(model))
    norms = 4096 * (2 * 32 + 1)
    assert weights == 8_030_261_248 - 128_256 * 4096 - norms


def test_a_model_without_such_products_is_refused() -> None:
    """Mixtures and latent attention have other products: no figure stands for them."""
    for name in ("mixtral-8x7b", "deepseek-v3"):
        with pytest.raises(InputError, match="not timed"):
            products_of(load_model(name))


def test_operations_of_a_product_and_of_attention_by_hand() -> None:
    """A decode attention of Llama 2 7B at 1,000 tokens reads 2 x 32 x 128 values a token and takes twice the FLOPs."""
    model = load_model("llama-2-7b")
    qkv = next(iter(product_operations(model, [8], ["bfloat16"], "cpu")))
    assert (qkv.flops, qkv.moved_bytes) == (2 * 8 * 4096 * 12288, 2 * (4096 * 12288 + 8 * (4096 + 12288)))
    decode, prefill = attention_operations(model, [4], [1000], ["bfloat16"], "cpu")
    assert decode.flops == 4 * 4096 * 4 * 1000
    assert decode.moved_bytes == 4 * 2 * 4096 * (1000 + 1) * 2
    assert prefill.flops == 4 * 4096 * 1000 * 1001 / 2


def _timed(kind: str, dtype: str, flops: float, moved: float, **shape: int) -> Timed:
    made = Operation(
        kind=kind, name=kind, dtype=dtype, flops=flops, moved_bytes=moved, prepare=lambda: lambda: None, shape=shape
    )
    return Timed(made, EVEN)


def test_the_bandwidth_is_that_of_memory_and_not_of_a_cache() -> None:
    """A small working set that streams faster does not count."""
    timed = [
        _timed("read", "float32", 0, 100e9, working_set_bytes=2**20),
        _timed("gemv", "bfloat16", 0, 20e9, working_set_bytes=2**30),
        _timed("copy", "float32", 0, 15e9, working_set_bytes=2**30),
    ]
    assert reached_bandwidth(timed, None, ["bfloat16"]).value == 40e9


def test_the_bandwidth_for_a_model_is_that_of_its_weights() -> None:
    """A model smaller than the cache reads its weights at the cache's rate: the working set is at least its bytes."""
    timed = [
        _timed("read", "float32", 0, 100e9, working_set_bytes=2**24),
        _timed("read", "float32", 0, 50e9, working_set_bytes=2**29),
        _timed("read", "float32", 0, 20e9, working_set_bytes=2**30),
    ]
    # SmolLM2 135M: 134.5 M parameters, 269 MB in bfloat16, between 16 MiB and 512 MiB
    assert reached_bandwidth(timed, load_model("smollm2-135m"), ["bfloat16"]).value == 100e9


def test_the_peak_is_the_best_product_in_that_dtype() -> None:
    """Products of other dtypes and attention do not count."""
    sizes = {"tokens": 1, "inputs": 1, "outputs": 1}
    timed = [
        _timed("gemm", "bfloat16", 3e12, 0, **sizes),
        _timed("product", "bfloat16", 4e12, 0, **sizes),
        _timed("gemm", "float32", 9e12, 0, **sizes),
        _timed("attention", "bfloat16", 9e12, 0),
    ]
    assert reached_peak(timed, "bfloat16").value == 8e12


def test_the_accelerator_file_is_one_that_accelerator_reads(tmp_path: Path) -> None:
    """Memory, bandwidth and peaks come back as measured numbers, whatever the chip is called."""
    text = accelerator_toml(
        CPU,
        Measured(value=31.25e9, note="sum over 1 GiB"),
        {"float32": Measured(value=416e9, note="a"), "bfloat16": Measured(value=1.5e12, note='b "quoted" \\')},
        date="2026-11-29",
        software="PyTorch 2.13",
    )
    path = tmp_path / "machine.toml"
    path.write_text(text, encoding="utf-8")
    found = load_accelerator(str(path))
    assert (found.memory_bytes, found.bandwidth_bytes_per_s) == (8 * 2**30, 31.25e9)
    assert (found.peak_flops("fp32"), found.peak_flops("bf16")) == (416e9, 1.5e12)
    assert {each.standing for each in (found.memory, found.bandwidth, *found.peaks.values())} == {"measured"}
    assert found.bandwidth.date == "2026-11-29"


def test_a_step_lays_each_sequence_in_blocks_of_its_own() -> None:
    """Two prompts of 20 tokens in blocks of 16: 40 different slots, the second sequence's from block 2 on."""
    step = step_of(StepKey("prefill", 2, 20), vocabulary=100)
    assert step.slots_T.tolist() == [*range(20), *range(32, 52)]
    assert step.positions_T.tolist() == [*range(20), *range(20)]
    assert (step.query_starts, step.rows_R.tolist()) == ((0, 20, 40), [19, 39])
    decode = step_of(StepKey("decode", 2, 20), vocabulary=100)
    assert (decode.slots_T.tolist(), decode.positions_T.tolist(), decode.query_starts) == (
        [19, 51],
        [19, 19],
        (0, 1, 2),
    )


def test_a_laid_out_decode_step_continues_the_prompt(tmp_path: Path) -> None:
    """Prefill of 7 tokens and a decode step give the logits that a prefill of 8 gives: the layout is the engine's."""
    model = load_decoder(load_checkpoint(tiny_checkpoint(tmp_path / "m")), dtype=torch.float64)
    whole = step_of(StepKey("prefill", 2, 8), vocabulary=320)
    expected = model.step(whole, model.new_cache(2))
    cache = model.new_cache(2)
    tokens = whole.tokens_T.view(2, 8)
    first = step_of(StepKey("prefill", 2, 7), vocabulary=320)
    model.step(_with_tokens(first, tokens[:, :7]), cache)
    last = step_of(StepKey("decode", 2, 8), vocabulary=320)
    torch.testing.assert_close(model.step(_with_tokens(last, tokens[:, 7:]), cache), expected)


def _with_tokens(step: StepInput, tokens: Tensor) -> StepInput:
    return replace(step, tokens_T=tokens.flatten())


def test_step_times_are_a_table_that_the_estimator_reads(tmp_path: Path) -> None:
    """Every step comes back with phase, batch, context and median."""
    keys = list(step_keys([1, 2], [8, 16], [8]))
    path = tmp_path / "steps.csv"
    path.write_text(table_csv([TimedStep(key, EVEN) for key in keys]))
    assert [tuple(each) for each in load_table(path)] == [(*key, 0.5) for key in sorted(keys)]


def test_a_context_beyond_the_model_is_refused(tmp_path: Path) -> None:
    """A step that the model cannot run is one clear line."""
    model = load_decoder(load_checkpoint(tiny_checkpoint(tmp_path / "m", context_tokens=64)))
    with pytest.raises(InputError, match="beyond the model's context of 64"):
        time_steps(model, [StepKey("decode", 1, 65)], CPU, passes=1)


def test_a_survey_gives_files_with_which_steps_of_this_machine_are_predicted(tmp_path: Path) -> None:
    """The whole probe on a tiny model: its files make ``steptime`` give the measured step for this machine."""
    folder = tiny_checkpoint(tmp_path / "tiny")
    accelerator, steps = tmp_path / "machine.toml", tmp_path / "steps.csv"
    answer = probe_ops(
        str(folder), threads=1, passes=1, batches=(1, 2), contexts=(8, 16), prompts=(8,), scope=SMOKE,
        accelerator_out=accelerator, steps_out=steps,
    )  # fmt: skip
    document = json.loads(answer.dumps())
    assert document["schema"] == "servewise.probe-ops/1"
    result = document["result"]
    assert {each["dtype"] for each in result["peaks"]} == {"float32", "bfloat16"}
    assert all(row["p10_s"] <= row["median_s"] <= row["p90_s"] for row in result["memory"] + result["products"])
    measured = {tuple(each)[:3]: each.step_s for each in load_table(steps)}
    predicted = steptime(
        str(folder), str(accelerator), batch=[1, 2], context=16, estimator=str(steps), weights="fp32", kv="fp32"
    )
    for row in predicted.result["rows"]:
        # a table is convex in the context: at its last point it is the measured step, or the floor above it
        assert row["step_s"] >= 0.99 * min(measured["decode", row["batch"], each] for each in (8, 16))
        assert row["step_s"] <= 1.01 * max(
            *(measured["decode", row["batch"], each] for each in (8, 16)), row["floor_s"]
        )


def test_mistakes_are_one_line_each() -> None:
    """An unknown dtype, an unknown model and steps without a model are told before anything is measured."""
    with pytest.raises(UnknownName, match="float16"):
        probe_ops(dtypes=["float17"])
    with pytest.raises(InputError, match="model"):
        probe_ops("no-such-model-anywhere")
    with pytest.raises(InputError, match="give a local checkpoint"):
        probe_ops("llama-2-7b", steps_out="x.csv")


def test_a_disturbed_call_is_never_repeated_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the system says that the process waited longer than the call took, a visit still ends with its patience."""
    import time

    waits = iter(range(10**6))
    monkeypatch.setattr("servewise.probe.ops.timing.waited_s", lambda all_threads: float(next(waits)))
    began = time.perf_counter()
    found = sample(lambda: time.sleep(0.001), CPU, 5, patience_s=0.05)
    assert time.perf_counter() - began < 1.0
    assert all(0 < each.call_s < 1e-6 and each.waited > 1 for each in found)
