"""Fused kernels of one layer of routed experts."""

from __future__ import annotations

import csv
from collections.abc import Iterator

from benchmarks.accuracy.kernel_bench.rows import DATA, Judged, bucket
from servewise.deployment.deployment import Deployment, Parallelism
from servewise.hardware.catalogue import load_accelerator
from servewise.modelspec.load import load_model
from servewise.precision import FORMATS
from servewise.steptime.gemms import layer_gemms
from servewise.steptime.lookup import coefficients_for
from servewise.steptime.work import compute_formats


def judge_experts() -> Iterator[Judged]:
    """Every published time of a fused mixture kernel."""
    with (DATA / "routed_experts.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            form = FORMATS[row["format"]]
            where = Deployment(
                model=load_model(row["model"]),
                accelerator=load_accelerator(row["accelerator"]),
                kv=FORMATS["bf16"],
                activations=form,
                weights=form,
                engine="vllm",
                parallelism=Parallelism(tensor=int(row["tensor"])),
            )
            tokens = int(row["tokens"])
            size = "one token, read from" if tokens == 1 else bucket(tokens, (64,)) + " tokens"
            yield Judged(
                "routed experts", row["accelerator"], size, float(row["latency_us"]) * 1e-6, _layer_s(where, tokens)
            )


def _layer_s(where: Deployment, tokens: int) -> float:
    known, accelerator = coefficients_for(where).coefficients, where.accelerator
    bandwidth, peak = accelerator.bandwidth_bytes_per_s, accelerator.peak_flops(compute_formats(where).linear)
    routed = [each for each in layer_gemms(where) if each.weights.unread]
    layers = sum(group.count for group in where.model.layers if group.feed_forward.experts)
    products = sum(
        each.calls
        * known.gemm.seconds(
            each.weights.bytes * (1.0 - each.weights.unread**tokens) / bandwidth,
            each.activation_bytes_per_token * tokens / bandwidth,
            each.flops_per_token * tokens / peak,
        )
        for each in routed
    )
    return products / layers + known.small.routed_layer_s
