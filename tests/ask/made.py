"""Workloads and an accelerator small enough to answer in a moment, with numbers that can be checked by hand."""

from __future__ import annotations

from servewise.ask.deploying import Options
from servewise.workload.arrivals import Poisson
from servewise.workload.lengths import Fixed, Lognormal
from servewise.workload.synthetic import Synthetic

STUDY: Options = {"peak_flops": 312e12, "bandwidth": 2e12, "memory": 80e9, "engine": "ideal"}
"""The study's accelerator by its three numbers, all memory beside the weights left for the KV cache."""

LLAMA_13B_PARAMETERS = 13_015_864_320  # meta-llama/Llama-2-13b-hf, model.safetensors.index.json: 26,031,728,640 bytes
KV_BYTES = 2 * 40 * 5120 * 2  # a token: keys and values of 40 layers, 5,120 wide, 2 bytes


def chat(count: int = 200, rate: float = 1.0) -> Synthetic:
    """Poisson arrivals of lognormal prompts and answers."""
    return Synthetic(
        arrivals=Poisson(rate),
        prompt_lengths=Lognormal(median=300, sigma=0.6),
        output_lengths=Lognormal(median=80, sigma=0.5),
        count=count,
    )


def equal(count: int, prompt: int, output: int, rate: float = 1.0) -> Synthetic:
    """Poisson arrivals of equal requests."""
    return Synthetic(arrivals=Poisson(rate), prompt_lengths=Fixed(prompt), output_lengths=Fixed(output), count=count)
