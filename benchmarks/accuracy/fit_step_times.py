"""Fit the shipped step-time coefficients: python -m benchmarks.accuracy.fit_step_times.

Writes src/servewise/steptime/coefficients.json from benchmarks/data/step_times. Takes about a minute on one core.
"""

from __future__ import annotations

import json
import math
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.accuracy.kernel_fit import (
    fit_all_reduce,
    fit_decode_attention,
    fit_gemm,
    fit_prefill_attention,
    fit_small,
)
from benchmarks.accuracy.step_data import MODELS, Key, Row, deployment, rows
from servewise.hardware.catalogue import load_accelerator
from servewise.steptime.attention import attention_layers
from servewise.steptime.calibrated import CalibratedRoofline
from servewise.steptime.coefficients import (
    AllReduce,
    AttentionCoefficients,
    Coefficients,
    GemmCoefficients,
    SmallKernels,
)
from servewise.steptime.lent_messages import MEDIAN, all_reduce, links_alike
from servewise.steptime.lookup import NEAREST_ENGINE, median_entry
from servewise.steptime.shipped import SCHEMA, Entry, Shipped, Spread, from_json

OUTPUT = Path(__file__).parents[2] / "src" / "servewise" / "steptime" / "coefficients.json"
COMMAND = "python -m benchmarks.accuracy.fit_step_times"
NINETY = 1.645  # 90% of a normal distribution lies within so many standard deviations
Group = tuple[str, str, str]

# Seconds that an engine adds to the kernels of a step. Assumed, not fitted; what was seen: vLLM 0.19 with asynchronous
# scheduling on an RTX 4090 decodes in 1.00 of the predicted time (tests/steptime/test_calibrated.py).
STEP_OVERHEAD_S = {"vllm": 0.0, "sglang": 0.0, "trtllm": 0.0}


@dataclass(frozen=True)
class Fit:
    """What the kernels of one accelerator, engine and format were fitted to, with standard errors."""

    gemm: GemmCoefficients
    attention: AttentionCoefficients
    errors: Mapping[str, float]


def groups(measured: Iterable[Row]) -> dict[Group, list[Row]]:
    """Rows by accelerator, engine and format."""
    found: dict[Group, list[Row]] = defaultdict(list)
    for row in measured:
        found[row.key.accelerator, row.key.engine, row.key.dtype].append(row)
    return dict(found)


def fit_group(measured: Sequence[Row]) -> Fit:
    """The coefficients of one group; multi-head attention takes the grouped one's where no such model is in it."""
    decode = [row for row in measured if row.phase == "decode"]
    prefill = [row for row in measured if row.phase == "prefill"]
    alone = [row for row in decode if multi_head(row.key)]
    shared = [row for row in decode if not multi_head(row.key)]
    gemm = fit_gemm(decode + prefill)
    grouped = fit_decode_attention(shared or alone)
    single = fit_decode_attention(alone) if alone else grouped
    attention = fit_prefill_attention(prefill, grouped.value, single.value)
    named = (
        ("gemm", gemm.errors),
        ("decode", grouped.errors),
        ("multi_head", single.errors),
        ("prefill", attention.errors),
    )
    errors = {f"{part}.{name}": size for part, each in named for name, size in each.items()}
    return Fit(gemm.value, attention.value, errors)


def multi_head(key: Key) -> bool:
    """Whether the model's query heads share no keys."""
    return all(layer.multi_head for _, layer in attention_layers(deployment(key)))


def messages(measured: Iterable[Row]) -> dict[tuple[str, str], dict[int, AllReduce]]:
    """All-reduce curves by accelerator and engine (the format does not matter to them)."""
    found: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in measured:
        if row.phase != "mixed":
            found[row.key.accelerator, row.key.engine].append(row)
    return {key: fit_all_reduce(each) for key, each in found.items()}


def coefficients(fit: Fit, small: SmallKernels, curves: Mapping[int, AllReduce]) -> Coefficients:
    """The fit as an estimator takes it, without engine overhead (the data are sums of kernels)."""
    return Coefficients(title="fit", gemm=fit.gemm, attention=fit.attention, small=small, all_reduce=curves)


@dataclass(frozen=True)
class Judged:
    """A measured step beside its prediction."""

    row: Row
    predicted_s: float

    @property
    def error(self) -> float:
        """Predicted / measured - 1."""
        return self.predicted_s / self.row.seconds - 1.0


def judge(measured: Iterable[Row], known: Coefficients) -> list[Judged]:
    """Each row predicted by the product's own estimator."""
    estimators: dict[Key, CalibratedRoofline] = {}
    found = []
    for row in measured:
        estimator = estimators.get(row.key)
        if estimator is None:
            estimator = estimators[row.key] = CalibratedRoofline(deployment(row.key), known)
        found.append(Judged(row, estimator.seconds(row.shape)))
    return found


def rotate(measured: Sequence[Row]) -> list[Judged]:
    """Each model judged by coefficients fitted on the other two, in every group."""
    found = []
    for held in MODELS:
        train = [row for row in measured if row.key.model != held]
        small, curves = fit_small([row for row in train if row.phase != "mixed"]), messages(train)
        test = groups(row for row in measured if row.key.model == held)
        for group, each in groups(train).items():
            found += judge(test.get(group, []), coefficients(fit_group(each), small, curves[group[:2]]))
    return found


def spread(judged: Iterable[Judged]) -> Spread:
    """The spread that would put 90% of the rows within its 90% interval; mixed steps count as prefill."""
    logs: dict[bool, list[float]] = {True: [0.0], False: [0.0]}
    for each in judged:
        logs[each.row.phase == "decode"].append(abs(math.log(each.predicted_s / each.row.seconds)))
    decode, prefill = (float(np.quantile(logs[kind], 0.9)) / NINETY for kind in (True, False))
    return Spread(decode=decode, prefill=prefill)


def document(measured: Sequence[Row], held_out: Sequence[Judged]) -> dict[str, Any]:
    """The coefficient file: fitted on all models, spread from the models held out."""
    small = fit_small([row for row in measured if row.phase != "mixed"])
    curves = messages(measured)
    by_group: dict[Group, list[Judged]] = defaultdict(list)
    for each in held_out:
        by_group[each.row.key.accelerator, each.row.key.engine, each.row.key.dtype].append(each)
    entries = []
    for (accelerator, engine, dtype), members in groups(measured).items():
        fit = fit_group(members)
        entries.append(
            {
                "accelerator": accelerator,
                "engine": engine,
                "version": members[0].key.version,
                "form": dtype,
                "gemm": asdict(fit.gemm),
                "attention": asdict(fit.attention),
                "spread": asdict(spread(by_group[accelerator, engine, dtype])),
                "errors": dict(fit.errors),
            }
        )
    found: dict[str, Any] = {
        "schema": SCHEMA,
        "fit": {
            "command": COMMAND,
            "date": datetime.now(UTC).date().isoformat(),
            "data": "benchmarks/data/step_times",
            "source": "kernel tables of AIConfigurator 0.12, https://github.com/ai-dynamo/aiconfigurator",
            "licence": "Apache-2.0",
            "step_overhead": "assumed: asynchronous schedulers hide it behind the kernels",
        },
        "entries": entries,
        "all_reduce": [
            {
                "accelerator": accelerator,
                "engine": engine,
                "ranks": ranks,
                "bytes": [knot.bytes for knot in curve.knots],
                "seconds": [knot.seconds for knot in curve.knots],
            }
            for (accelerator, engine), each in curves.items()
            for ranks, curve in each.items()
        ],
        "small_kernels": asdict(small),
        "step_overhead_s": STEP_OVERHEAD_S,
        "borrowing": {name: {"decode": 0.0, "prefill": 0.0} for name in ("accelerator", "engine", "median")},
        "valid_range": _range(measured),
    }
    found["borrowing"] = borrowing(measured, from_json(found))
    return {name: _rounded(each) for name, each in found.items()}


def borrowing(measured: Sequence[Row], table: Shipped) -> dict[str, Any]:
    """The spread when another accelerator's, another engine's, or the median's coefficients stand in."""
    sample = groups(measured[::7])
    judged: dict[str, list[Judged]] = {"accelerator": [], "engine": [], "median": []}
    for kind, group, entry, curves in _stand_ins(table):
        known = coefficients(Fit(entry.gemm, entry.attention, {}), table.small, curves)
        comparable = [row for row in sample.get(group, []) if row.key.tensor == 1 or _same_link(group[0], entry)]
        judged[kind] += judge(comparable, known)
    return {kind: asdict(spread(each)) for kind, each in judged.items()}


def _same_link(target: str, entry: Entry) -> bool:
    """Whether messages can be borrowed too: ``lookup`` takes those of an accelerator with a like link."""
    if entry.accelerator == MEDIAN:
        return True
    one, other = load_accelerator(target).link, load_accelerator(entry.accelerator).link
    return one is not None and other is not None and links_alike(one.bandwidth.value, other.bandwidth.value)


def _stand_ins(table: Shipped) -> Iterator[tuple[str, Group, Entry, Mapping[int, AllReduce]]]:
    """(kind, group, entry that stands in for it, its messages) for every way in which ``lookup`` may borrow."""
    for own in table.entries:
        group, device = (own.accelerator, own.engine, own.form), load_accelerator(own.accelerator)
        for source in table.accelerators:
            other = table.entry(source, own.engine, own.form)
            if other is not None and other is not own:
                yield "accelerator", group, other, all_reduce(table, source, own.engine, device)
        middle = median_entry(table, own.engine, own.form, without=own.accelerator)
        yield "median", group, middle, all_reduce(table, MEDIAN, own.engine, device)
        nearest = table.entry(own.accelerator, NEAREST_ENGINE, own.form)
        if nearest is not None and nearest is not own:
            yield "engine", group, nearest, table.all_reduce[own.accelerator, NEAREST_ENGINE]


def _range(measured: Sequence[Row]) -> dict[str, list[int]]:
    decode = [row.shape for row in measured if row.phase == "decode"]
    contexts = [shape.decode_context_tokens // shape.decode_sequences for shape in decode]
    prompts = [row.shape.prefill_tokens for row in measured if row.phase != "decode"]
    batches = [shape.decode_sequences for shape in decode]
    ranks = [row.key.tensor for row in measured]
    named = {"decode_sequences": batches, "context_tokens": contexts, "prefill_tokens": prompts, "tensor": ranks}
    return {name: [min(each), max(each)] for name, each in named.items()}


def _rounded(value: Any) -> Any:
    """Floats to five digits: more would be noise in a file that people read."""
    if isinstance(value, float):
        return float(f"{value:.5g}")
    if isinstance(value, dict):
        return {name: _rounded(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    return value


def text(found: Mapping[str, Any]) -> str:
    """The file's text: one line an entry, so that a refit shows in the diff."""
    parts = []
    for name, value in found.items():
        lines = ",\n  ".join(json.dumps(each) for each in value) if isinstance(value, list) else ""
        parts.append(f'"{name}": [\n  {lines}\n ]' if lines else f'"{name}": {json.dumps(value)}')
    return "{\n " + ",\n ".join(parts) + "\n}\n"


def main() -> None:
    """Fit, and write the file."""
    measured = rows()
    OUTPUT.write_text(text(document(measured, rotate(measured))), "utf-8")
    sys.stdout.write(f"{len(measured)} rows fitted, {OUTPUT.name} written\n")


if __name__ == "__main__":
    main()
