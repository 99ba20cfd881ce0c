"""The ideal roofline against the study's table and against hand calculation."""

from __future__ import annotations

import pytest
from tests.steptime.known import FP8, accelerator, deployed

from servewise.errors import InputError
from servewise.steptime.ideal import ideal_roofline, two_term
from servewise.steptime.ridge import ridge_batch, ridge_batch_without_kv
from servewise.steptime.shape import decode_shape, prefill_shape

STUDY = two_term(weight_bytes=26e9, kv_bytes_per_token=819_200, flops_per_token=26e9, bandwidth=2e12, peak=312e12)


@pytest.mark.parametrize(
    ("batch", "compute_ms", "memory_ms", "tokens_per_s"),
    [(1, 0.08, 13.8, 72), (4, 0.33, 16.4, 245), (8, 0.67, 19.7, 406), (16, 1.33, 26.4, 606), (32, 2.67, 39.8, 803)],
)
def test_study_table(batch: int, compute_ms: float, memory_ms: float, tokens_per_s: int) -> None:
    """The study's decode-step table at 2,048 tokens comes out of its inputs, to its rounding."""
    step = STUDY.step(decode_shape(batch, 2048))

    assert round(step.compute_s * 1e3, 2) == compute_ms
    assert round(step.memory_s * 1e3, 1) == memory_ms
    assert round(batch / step.step_s) == tokens_per_s
    assert step.bound == "memory"


def test_study_ridge() -> None:
    """Without KV the study's hardware turns compute-bound at 312e12 / 2e12 = 156; with 2,048 tokens it never does."""
    assert ridge_batch_without_kv(STUDY) == 156
    assert ridge_batch(STUDY, 2048) is None


def test_llama_2_7b_decode_by_hand() -> None:
    """Batch 4 at 1,000 tokens of Llama-2-7B on an A100, each term written out."""
    layer_matrices = 4 * 4096 * 4096 + 3 * 4096 * 11008
    matrices = 32 * layer_matrices + 32 * 2 * 4096
    head = 32000 * 4096
    read = 2 * (matrices + head + 4 * 4096) + 4 * 1000 * 2 * 32 * 32 * 128 * 2
    flops = 4 * 2 * (matrices + head) + 4 * 1000 * 32 * 2 * 2 * 4096

    step = ideal_roofline(deployed()).step(decode_shape(4, 1000))

    assert step.memory_s == pytest.approx(read / 2.039e12, rel=1e-12)
    assert step.compute_s == pytest.approx(flops / 312e12, rel=1e-12)
    assert step.step_s == step.floor_s == step.memory_s


def test_prefill_by_hand() -> None:
    """A prompt of 2,048 tokens is compute-bound; only its last position goes through the head."""
    matrices = 32 * (4 * 4096 * 4096 + 3 * 4096 * 11008) + 32 * 2 * 4096
    flops = 2048 * 2 * matrices + 2 * 32000 * 4096 + (2048 * 2049 // 2) * 32 * 2 * 2 * 4096

    step = ideal_roofline(deployed()).step(prefill_shape(1, 2048))

    assert step.bound == "compute"
    assert step.step_s == pytest.approx(flops / 312e12, rel=1e-12)


def test_peak_follows_the_wider_operand() -> None:
    """fp8 weights with bf16 activations compute at the bf16 peak, with fp8 activations at the fp8 peak."""
    chip = accelerator("h100", 3.35e12, bf16=989e12, fp8=1979e12)
    shape = prefill_shape(1, 8192)
    weight_only = ideal_roofline(deployed(device=chip, weights=FP8)).step(shape)
    both = ideal_roofline(deployed(device=chip, weights=FP8, activations=FP8)).step(shape)

    assert 1.5 < weight_only.compute_s / both.compute_s < 2.0


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf")])
def test_two_term_refuses_absurd_numbers(bad: float) -> None:
    """A bandwidth that is no positive number is refused by name."""
    with pytest.raises(InputError, match="bandwidth"):
        two_term(weight_bytes=1.0, kv_bytes_per_token=1.0, flops_per_token=1.0, bandwidth=bad, peak=1.0)
