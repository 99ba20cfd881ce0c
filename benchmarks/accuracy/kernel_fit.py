"""Fits of the physical coefficients to the kernels' measured parts, one kernel kind at a time."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from scipy.optimize import least_squares, nnls

from benchmarks.accuracy.step_data import Row, deployment
from servewise.steptime.attention import attention_layers
from servewise.steptime.coefficients import (
    AllReduce,
    AttentionCoefficients,
    DecodeAttention,
    GemmCoefficients,
    Knot,
    SmallKernels,
)
from servewise.steptime.gemms import head_gemm, layer_gemms
from servewise.steptime.work import compute_formats

Array = np.ndarray[Any, np.dtype[np.float64]]
T = TypeVar("T")
SOFT = 0.05  # residuals beyond 5% of the step count linearly: a few irregular kernels must not bend the fit
KNOTS = tuple(2.0**k for k in range(12, 31))  # 4 KiB to 1 GiB


@dataclass(frozen=True)
class Fitted(Generic[T]):
    """Coefficients with the standard errors of their logarithms, by field name."""

    value: T
    errors: dict[str, float]


def as_array(values: Any) -> Array:
    return np.asarray(values, dtype=np.float64)


def solve(
    residuals: Callable[[Array], Array], start: Sequence[float], low: Sequence[float], high: Sequence[float]
) -> tuple[Array, Array]:
    """Robust bounded least squares: the coefficients and their standard errors."""
    found = least_squares(residuals, start, bounds=(low, high), loss="soft_l1", f_scale=SOFT, x_scale="jac")
    free = max(1, len(found.fun) - len(start))
    information = found.jac.T @ found.jac
    covariance = np.linalg.pinv(information) * float(np.mean(found.fun**2)) * len(found.fun) / free
    return found.x, np.sqrt(np.maximum(np.diag(covariance), 0.0))


def fit_gemm(rows: Sequence[Row]) -> Fitted[GemmCoefficients]:
    """Launch, efficiencies, sharpness and activations' share of the matrix products."""
    seen: dict[tuple[object, ...], Row] = {}
    for row in rows:
        seen.setdefault((row.key, row.shape.tokens, row.shape.logit_rows), row)
    memory, moved, compute, calls, wanted = [], [], [], [], []
    for row in seen.values():
        each = _products(row)
        memory.append([one[0] for one in each])
        moved.append([one[1] for one in each])
        compute.append([one[2] for one in each])
        calls.append([one[3] for one in each])
        wanted.append(row.parts["gemm"])
    m, a, c, n, y = (np.array(each) for each in (memory, moved, compute, calls, wanted))

    def predict(p: Array) -> Array:
        mem = m * np.exp(p[1]) + a * np.exp(p[4])
        com = c * np.exp(p[2])
        power = 1.0 + np.exp(p[3])
        large, small = np.maximum(mem, com), np.minimum(mem, com)
        return as_array((n * (np.exp(p[0]) + large * (1.0 + (small / large) ** power) ** (1.0 / power))).sum(axis=1))

    x, errors = solve(
        lambda p: np.log(predict(p) / y),
        [math.log(3e-6), 0.2, 0.4, 1.0, 0.7],
        [math.log(1e-7), 1e-3, 1e-3, -3.0, -3.0],
        [math.log(1e-4), 2.0, 2.0, 3.0, 3.0],
    )
    names = ("launch_s", "weight_efficiency", "flop_efficiency", "sharpness", "activation_factor")
    return Fitted(
        GemmCoefficients(
            launch_s=math.exp(x[0]),
            weight_efficiency=math.exp(-x[1]),
            flop_efficiency=math.exp(-x[2]),
            sharpness=1.0 + math.exp(x[3]),
            activation_factor=math.exp(x[4]),
        ),
        dict(zip(names, errors.tolist(), strict=True)),
    )


def _products(row: Row) -> list[tuple[float, float, float, int]]:
    """(memory, activations, compute, calls) of each product at the accelerator's full rates."""
    where, formats = deployment(row.key), compute_formats(deployment(row.key))
    bandwidth = where.accelerator.bandwidth_bytes_per_s
    found = []
    for gemm, tokens, form in (
        *((each, row.shape.tokens, formats.linear) for each in layer_gemms(where)),
        (head_gemm(where), row.shape.logit_rows, formats.head),
    ):
        peak = where.accelerator.peak_flops(form)
        found.append(
            (
                gemm.weights.bytes / bandwidth,
                gemm.activation_bytes_per_token * tokens / bandwidth,
                gemm.flops_per_token * tokens / peak,
                gemm.calls,
            )
        )
    return found


def fit_decode_attention(rows: Sequence[Row]) -> Fitted[DecodeAttention]:
    """Launch, ramp and KV efficiency of decode attention; residuals in shares of the step."""
    layers, floor, y, total = [], [], [], []
    for row in rows:
        ((count, layer),) = attention_layers(deployment(row.key))
        bandwidth = deployment(row.key).accelerator.bandwidth_bytes_per_s
        layers.append(count)
        floor.append(layer.kv_bytes * row.shape.decode_context_tokens / bandwidth)
        y.append(row.parts["attention"])
        total.append(row.seconds)
    n, f, wanted, step = (np.array(each) for each in (layers, floor, y, total))

    def predict(p: Array) -> Array:
        line = np.maximum(p[1] * 1e-6 + f * np.exp(p[2]), f)
        return as_array(n * np.maximum(np.exp(p[0]), line))

    x, errors = solve(
        lambda p: np.log1p(np.maximum((predict(p) - wanted) / step, -0.99)),
        [math.log(1.3e-5), 10.0, 0.2],
        [math.log(1e-6), -60.0, 1e-3],
        [math.log(1e-3), 200.0, 2.5],
    )
    value = DecodeAttention(launch_s=math.exp(x[0]), ramp_s=float(x[1]) * 1e-6, kv_efficiency=math.exp(-x[2]))
    return Fitted(value, {"launch_s": float(errors[0]), "kv_efficiency": float(errors[2])})


def fit_prefill_attention(
    rows: Sequence[Row], decode: DecodeAttention, multi_head: DecodeAttention
) -> Fitted[AttentionCoefficients]:
    """Launch, FLOP efficiency and activations' share of prefill attention."""
    table, y, total = [], [], []
    for row in rows:
        where = deployment(row.key)
        ((count, layer),) = attention_layers(where)
        bandwidth = where.accelerator.bandwidth_bytes_per_s
        kernel = multi_head if layer.multi_head else decode
        peak = where.accelerator.peak_flops(compute_formats(where).attention)
        table.append(
            (
                count,
                layer.prefill.full * row.shape.prefill_pairs / peak,
                layer.moved_bytes_per_token * row.shape.prefill_tokens / bandwidth,
                layer.kv_bytes * row.shape.prefill_context_tokens / bandwidth / kernel.kv_efficiency,
            )
        )
        y.append(row.parts["attention"])
        total.append(row.seconds)
    n, f, a, kv = np.array(table).T
    wanted, step = np.array(y), np.array(total)

    def predict(p: Array) -> Array:
        return as_array(n * (np.exp(p[0]) + f * np.exp(p[1]) + a * np.exp(p[2]) + kv))

    x, errors = solve(
        lambda p: np.log1p(np.maximum((predict(p) - wanted) / step, -0.99)),
        [math.log(2.5e-5), 0.6, 0.5],
        [math.log(1e-6), 1e-3, -4.0],
        [math.log(1e-3), 3.0, 4.0],
    )
    names = ("prefill_launch_s", "flop_efficiency", "activation_factor")
    value = AttentionCoefficients(
        decode=decode,
        multi_head=multi_head,
        prefill_launch_s=math.exp(x[0]),
        flop_efficiency=math.exp(-x[1]),
        activation_factor=math.exp(x[2]),
    )
    return Fitted(value, dict(zip(names, errors.tolist(), strict=True)))


def fit_small(rows: Sequence[Row]) -> SmallKernels:
    """Seconds a layer and bytes a value of norms and activations: a linear form, so plain least squares."""
    table, y = [], []
    for row in rows:
        where = deployment(row.key)
        model, bandwidth = where.model, where.accelerator.bandwidth_bytes_per_s
        layers, tokens = model.layer_count, row.shape.tokens
        width = model.layers[0].feed_forward.dense_parameters / (3 * model.hidden_size) / row.key.tensor
        table.append((layers, layers * tokens * model.hidden_size / bandwidth, layers * tokens * width / bandwidth))
        y.append(row.parts["other"])
    wanted = np.array(y)
    x, _ = nnls(np.array(table) / wanted[:, None], np.ones(len(y)))
    return SmallKernels(layer_s=float(x[0]), hidden_bytes=float(x[1]), width_bytes=float(x[2]))


def fit_all_reduce(rows: Sequence[Row]) -> dict[int, AllReduce]:
    """The time of one of two all-reduces a layer by message size, for each number of ranks measured."""
    found: dict[int, list[tuple[float, float]]] = defaultdict(list)
    for row in rows:
        if row.key.tensor > 1:
            model = deployment(row.key).model
            size = 2.0 * model.hidden_size * row.shape.tokens
            found[row.key.tensor].append((size, row.parts["communication"] / (2 * model.layer_count)))
    return {ranks: _curve(points) for ranks, points in sorted(found.items())}


def _curve(points: Sequence[tuple[float, float]]) -> AllReduce:
    size, seconds = np.log(np.array(points)).T
    knots = np.log(np.array(KNOTS))
    inside = knots[np.searchsorted(knots, size.min(), "right") - 1 : np.searchsorted(knots, size.max(), "left") + 1]
    at = np.clip(np.searchsorted(inside, size, "right") - 1, 0, len(inside) - 2)
    share = (size - inside[at]) / (inside[at + 1] - inside[at])
    hats = np.zeros((len(size), len(inside)))
    hats[np.arange(len(size)), at] = 1 - share
    hats[np.arange(len(size)), at + 1] += share
    values = np.maximum.accumulate(np.linalg.lstsq(hats, seconds, rcond=None)[0])
    return AllReduce(tuple(Knot(float(round(math.exp(k))), math.exp(v)) for k, v in zip(inside, values, strict=True)))
