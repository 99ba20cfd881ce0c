"""Claims in prose: each mistake is found where it stands, and a careful report has none."""

from __future__ import annotations

import pytest
from tests.check.checked import codes, findings, the

CAREFUL = """\
# Llama-3.1-8B on one H100, vLLM 0.11.0, bf16

`vllm bench serve --random-input-len 1024 --random-output-len 128 --max-concurrency 16`, three runs each.

With 16 concurrent streams TTFT p95 is 210 ms (± 8 ms) and TPOT p95 12 ms; the median of TTFT is 95 ms.
Against the baseline without chunked prefill that is 1.4x faster at p95, for the same prompts and batch.
"""


def test_a_careful_report_has_no_finding() -> None:
    """Hardware, load, lengths, precision, command, spread and percentiles are all there."""
    assert findings(CAREFUL) == ()


def test_a_figure_without_conditions_names_what_is_missing() -> None:
    """A latency alone lacks all four; one with its accelerator lacks three."""
    alone = the("latency-without-conditions", "Our TTFT is 45 ms at p95.")
    some = the("latency-without-conditions", "On an A100 our TTFT is 45 ms at p95.")

    assert alone.figures["missing"] == ["hardware", "load", "lengths", "precision"]
    assert some.figures["missing"] == ["load", "lengths", "precision"]
    assert (alone.place.line, alone.place.column) == (1, 13)
    assert alone.severity == "warning"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("The mean latency is 45 ms.", "mean-only"),
        ("TTFT p95 is 45 ms.", "not-reproducible"),
        ("TTFT p95 is 45 ms.", "one-run"),
        ("It is 2.8x faster.", "speedup-without-workload"),
        ("A speedup of 2.8x with EAGLE.", "speedup-without-workload"),
        ("We quantised to int4 with no quality loss.", "quality-claim-unmeasured"),
        ("fp8 is lossless for our model, so we quantize.", "quality-claim-unmeasured"),
        ("int4 quantisation always ruins accuracy.", "quality-claim-unmeasured"),
        ("We use static batching of 8 for generation.", "static-batching"),
        ("Speculative decoding with 5 draft tokens is on.", "speculation-unmeasured"),
        ("With concurrency 32 we see 2,000 tokens/s, 0.5 ms per token.", "throughput-read-as-latency"),
        ("TTFT is too high, so we enabled speculative decoding.", "tpot-fix-for-ttft"),
        ("Users complain of slow first token; we switched to AWQ weights.", "tpot-fix-for-ttft"),
        ("TPOT is too slow, therefore we added prefix caching.", "ttft-fix-for-tpot"),
        ("WARNING scheduler.py:1057 Sequence group 0 is preempted by PreemptionMode.RECOMPUTE mode", "preemption-seen"),
        ("KV cache pool is full. Retract requests. #retracted_reqs: 1", "preemption-seen"),
        ('vllm:num_preemptions_total{model_name="m"} 17.0', "preemption-seen"),
    ],
)
def test_a_mistake_is_found(text: str, code: str) -> None:
    """The study's and the field's mistakes in a sentence each."""
    assert code in codes(text)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (
            "We quantised to int4; GSM8K falls from 0.84 to 0.82: no quality loss that matters.",
            "quality-claim-unmeasured",
        ),
        ("TTFT is too high, so we enabled prefix caching.", "tpot-fix-for-ttft"),
        ("TPOT is too slow, so we enabled speculative decoding.", "ttft-fix-for-tpot"),
        ("TTFT and TPOT are too high, so we added prefix caching and speculation.", "ttft-fix-for-tpot"),
        ("One stream: 50 tokens/s, 20 ms per token.", "throughput-read-as-latency"),
        ("With concurrency 32 we see 2,000 tokens/s, 16 ms per token.", "throughput-read-as-latency"),
        ("Continuous batching instead of static batching.", "static-batching"),
        ("5 draft tokens at an acceptance of 0.71.", "speculation-unmeasured"),
        ('vllm:num_preemptions_total{model_name="m"} 0.0', "preemption-seen"),
        ("The meeting starts in 45 s.", "latency-without-conditions"),
        (
            "vLLM 0.8.5 on 1x A100-80GB, Llama 3 8B, bf16: 10 req/s, ShareGPT, TTFT p99 200 ms",
            "latency-without-conditions",
        ),
        ("It is 2.8x faster than the baseline at batch 1 with 512 input tokens.", "speedup-without-workload"),
    ],
)
def test_what_is_no_mistake_is_not_found(text: str, code: str) -> None:
    """The same words used rightly raise nothing."""
    assert code not in codes(text)


def test_signs_of_preemption_are_counted() -> None:
    """Three lines of the same kind are one finding with its count, at the first."""
    line = "Sequence group {} is preempted by PreemptionMode.RECOMPUTE mode\n"
    found = the("preemption-seen", "started\n" + "".join(line.format(each) for each in range(3)))
    assert (found.figures["times"], found.place.line) == (3, 2)
