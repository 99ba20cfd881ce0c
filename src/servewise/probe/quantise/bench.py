"""What fewer bits cost a real checkpoint: KL and top-1 agreement with the model as it is, perplexity, exact match.

Weights, KV cache and activations are changed one at a time, so that each cost has one cause. The reference is the
checkpoint's own weights computed in ``dtype``. Legend: T positions, S sequences, V vocabulary.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from servewise.answer import finite
from servewise.engine.checkpoint import Tokenizer
from servewise.engine.decoder.decoder import Decoder
from servewise.engine.quantised.model import QuantisedKv, moments_of, quantise
from servewise.engine.quantised.moments import Moments
from servewise.engine.step import Model
from servewise.errors import InputError
from servewise.probe.quantise.log import Row, RowLog
from servewise.probe.quantise.passages import BLOCK_TOKENS, Passage, logits_by_row
from servewise.probe.quantise.quality import Quality, bootstrapped, rows_compared
from servewise.probe.quantise.settings import Setting, stored_bytes
from servewise.probe.quantise.tasks import Task, matches

MOST_REFERENCE_BYTES = 6_000_000_000
REFERENCE = "reference"
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """What the settings are judged by: passages, tasks, and the passages that GPTQ is calibrated on (other ones)."""

    passages: tuple[Passage, ...]
    calibration: tuple[Passage, ...]
    tokenizer: Tokenizer
    tasks: tuple[Task, ...] = ()


class Bench:
    """A decoder beside its changed selves: computes the reference once, the calibration when it is first needed."""

    def __init__(self, decoder: Decoder, material: Material, *, tables: bool, seed: int) -> None:
        self._decoder, self._material, self._tables, self._seed = decoder, material, tables, seed
        positions = sum(len(each.inputs) for each in material.passages)
        if (size := positions * decoder.config.vocabulary * decoder.dtype.itemsize) > MOST_REFERENCE_BYTES:
            raise InputError(
                f"the reference's probabilities at {positions} positions take {size / 1e9:.1f} GB",
                where="sequences",
                hint=f"at most {MOST_REFERENCE_BYTES / 1e9:.0f} GB: fewer or shorter sequences",
            )

    @cached_property
    def reference_logs(self) -> Tensor:
        """(S, T, V) log-probabilities of the model as it is."""
        passages = self._material.passages
        shape = (len(passages), len(passages[0].inputs), self._decoder.config.vocabulary)
        kept = torch.promote_types(self._decoder.dtype, torch.float32)
        found = torch.empty(shape, dtype=kept, device=self._decoder.device)
        for positions, index, logits_RV in self._logits(self._decoder, passages, shape[1]):
            found[index, positions] = torch.log_softmax(logits_RV, -1)
        return found

    @cached_property
    def moments(self) -> Moments:
        """Second moments of what enters the products, on the calibration text."""
        return moments_of(self._decoder, self._calibrate)

    def _calibrate(self, model: Model) -> None:
        passages = self._material.calibration
        for _ in self._logits(model, passages, len(passages[0].inputs)):
            pass

    def _logits(self, model: Model, some: Sequence[Passage], chunk: int) -> Iterator[tuple[slice, int, Tensor]]:
        return logits_by_row(model, some, chunk=chunk, device=self._decoder.device)

    @cached_property
    def reference(self) -> Quality:
        """The reference's own surprise at the text."""
        return self.quality(self._decoder, chunk=len(self._material.passages[0].inputs))

    def quality(self, model: Model, *, chunk: int) -> Quality:
        """How far ``model`` is from the reference."""
        passages = self._material.passages
        means = np.zeros((3, len(passages)))
        for positions, index, logits_RV in self._logits(model, passages, chunk):
            targets_T = torch.tensor(passages[index].targets[positions], device=logits_RV.device)
            rows_3T = rows_compared(self.reference_logs[index, positions], logits_RV, targets_T)
            means[:, index] += rows_3T.double().sum(1).cpu().numpy() / len(passages[index].inputs)
        return Quality(*means)

    def changed(self, setting: Setting) -> Model:
        """The model with the setting."""
        if setting.target == "kv":
            return QuantisedKv(self._decoder, setting.kv())
        moments = self.moments if setting.method == "gptq" else None
        return quantise(self._decoder, setting.weights(tables=self._tables), moments)

    def row(self, setting: Setting) -> Row:
        """The setting's row."""
        began = time.monotonic()
        model = self.changed(setting)
        chunk = BLOCK_TOKENS if setting.target == "kv" else len(self._material.passages[0].inputs)
        quality = self.quality(model, chunk=chunk)
        return {
            **_described(setting),
            **self._stored(setting),
            **self._judged(quality, model),
            **quality.perplexity_ratio(self.reference, self._seed).to_json("perplexity_ratio"),
            "runs": setting.runs,
            "measuring_s": time.monotonic() - began,
        }

    def reference_row(self) -> Row:
        """The reference's perplexity and matches."""
        return self._judged(self.reference, self._decoder)

    def _judged(self, quality: Quality, model: Model) -> dict[str, Any]:
        judged = {
            **quality.kl(self._seed).to_json("kl"),
            **quality.agreement(self._seed).to_json("top1_agreement"),
            **quality.perplexity(self._seed).to_json("perplexity"),
        }
        if self._material.tasks:
            found = np.array(matches(model, self._material.tasks, self._material.tokenizer, self._decoder.device))
            judged |= bootstrapped(found, self._seed).to_json("exact_match")
        return judged

    def _stored(self, setting: Setting) -> dict[str, Any]:
        size = stored_bytes(setting, self._decoder.config, tables=self._tables, block_tokens=BLOCK_TOKENS)
        return {"kv_bytes_per_token": size} if setting.target == "kv" else {"weight_bytes": size}


def _described(setting: Setting) -> dict[str, Any]:
    return {
        "target": setting.target,
        "bits": setting.bits,
        "group": setting.group or "channel",
        "grid": "symmetric" if setting.symmetric else "asymmetric",
        "method": setting.method,
        "keys": setting.keys,
    }


def measure(bench: Bench, settings: Sequence[Setting], log: RowLog, progress: Progress | None = None) -> None:
    """Put a row for each setting, and the reference's, into ``log``; those that are there are not measured again."""
    if REFERENCE not in log.rows:
        log.add(REFERENCE, bench.reference_row())
    for done, setting in enumerate(settings, 1):
        if setting.name not in log.rows:
            log.add(setting.name, finite(bench.row(setting)))
        if progress is not None:
            progress(done, len(settings))


def cheapest(rows: Sequence[Row], threshold_kl: float) -> list[Row]:
    """For each target the row of fewest bytes whose KL is under the threshold, at the upper end of its interval."""
    found: dict[str, Row] = {}
    for row in rows:
        best = found.get(row["target"])
        if row["kl"] is not None and row["ci95_kl"][1] <= threshold_kl and (best is None or _cost(row) < _cost(best)):
            found[row["target"]] = row
    return list(found.values())


def _cost(row: Row) -> tuple[int, float]:
    """Bytes, then KL."""
    return (row.get("kv_bytes_per_token", row.get("weight_bytes", 0)), row["kl"])
