"""Figures outside the range of a fit say so."""

from __future__ import annotations

from pathlib import Path

import servewise

FITTED_ON_4 = """schema = "servewise.calibration/1"
model = "smollm2-135m"
accelerator = "l4"
engine = "vllm"
precision = "bf16 weights, bf16 KV cache, bf16 activations"
parallelism = "TP1"
policy = "continuous"
source = "request records"
measured = "2026-11-29"
version = "0.1.0"
runs = ["a"]
spread = 0.05

[coefficients]
step_s = { value = 0.01, ci95 = [0.009, 0.011] }
sequence_s = { value = 0.001, ci95 = [0.0009, 0.0011] }
weight_efficiency = { value = 0.5, ci95 = [0.4, 0.6] }
flop_efficiency = { value = 0.5, ci95 = [0.4, 0.6] }
ramp_tokens = { value = 0.0, ci95 = [0.0, 1.0] }
kv_efficiency = { value = 0.5, ci95 = [0.4, 0.6] }
attention_efficiency = { value = 0.5, ci95 = [0.4, 0.6] }
request_s = { value = 0.01, ci95 = [0.009, 0.011] }

[errors]
train_median = 0.05
train_p90 = 0.1

[valid_range]
decode_sequences = [1, 4]
context_tokens = [64, 1024]
prefill_tokens = [64, 2048]
tensor = [1, 1]
"""


def _codes(answer: servewise.Answer) -> list[str]:
    return [each.code for each in answer.caveats]


def test_a_step_of_more_sequences_than_were_fitted_says_so(tmp_path: Path) -> None:
    """Fitted on 4 sequences: a step of 4 is inside, one of 256 is not, nor is one of 4 at 8,000 tokens."""
    file = tmp_path / "server.toml"
    file.write_text(FITTED_ON_4)

    def codes(batch: int, context: int) -> list[str]:
        return _codes(servewise.steptime("smollm2-135m", "l4", batch=batch, context=context, estimator=str(file)))

    assert "outside-calibrated-range" not in codes(4, 512)
    assert "outside-calibrated-range" in codes(256, 512)
    assert "outside-calibrated-range" in codes(4, 8000)


def test_a_load_with_more_under_way_than_was_fitted_says_so(tmp_path: Path) -> None:
    """Requests of about a second: at 1/s one or two are under way, at 30/s far more than the 4 of the fit."""
    file = tmp_path / "server.toml"
    file.write_text(FITTED_ON_4)
    workload = tmp_path / "short.toml"
    workload.write_text(
        'requests = 200\n[arrivals]\nkind = "poisson"\nrate_per_s = 1.0\n'
        '[prompt_tokens]\nkind = "fixed"\ntokens = 128\n[output_tokens]\nkind = "fixed"\ntokens = 64\n'
    )

    def codes(rate: float) -> list[str]:
        return _codes(
            servewise.simulate(
                "smollm2-135m", "l4", workload=str(workload), rate=rate, seeds=2, slots=64, estimator=str(file)
            )
        )

    assert "outside-calibrated-range" not in codes(1.0)
    assert "outside-calibrated-range" in codes(30.0)
