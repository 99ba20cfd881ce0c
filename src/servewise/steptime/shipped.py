"""The coefficients that ship with the package, as the fit wrote them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib.resources import files
from typing import Any

from servewise.steptime.coefficients import (
    AllReduce,
    AttentionCoefficients,
    DecodeAttention,
    GemmCoefficients,
    Knot,
    SmallKernels,
    ValidRange,
)

FILE = "coefficients.json"
CARDS_FILE = "card_coefficients.json"
SCHEMA = "servewise.coefficients/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """How far a held-out model's step falls from the prediction: standard deviation of the logarithm of their ratio."""

    decode: float
    prefill: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What was fitted for one accelerator, engine and number format (``bf16`` or ``fp8``).

    ``errors`` are the standard errors of the logarithms of the coefficients, by ``part.field``. ``stands_for`` are
    other accelerators with the same chip. ``layer_gap_s`` is what lies between a layer's kernels, where these were
    timed alone.
    """

    accelerator: str
    engine: str
    version: str
    form: str
    gemm: GemmCoefficients
    attention: AttentionCoefficients
    spread: Spread
    errors: Mapping[str, float]
    stands_for: tuple[str, ...] = ()
    layer_gap_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cards:
    """What was fitted for single cards, one model each; ``all_reduce`` by (accelerator, engine), then by ranks."""

    entries: tuple[Entry, ...] = ()
    all_reduce: Mapping[tuple[str, str], Mapping[int, AllReduce]] = field(default_factory=dict)

    def entry(self, accelerator: str, engine: str, form: str) -> Entry | None:
        """The entry that was measured on that accelerator, or on one with the same chip."""
        known = [each for each in self.entries if (each.engine, each.form) == (engine, form)]
        return next((each for each in known if accelerator in (each.accelerator, *each.stands_for)), None)

    def curves(self, accelerator: str, engine: str) -> Mapping[int, AllReduce]:
        """The message times that were measured on that accelerator, or on one with the same chip."""
        like = (each.accelerator for each in self.entries if accelerator in (each.accelerator, *each.stands_for))
        return next((self.all_reduce[name, engine] for name in like if (name, engine) in self.all_reduce), {})


@dataclass(frozen=True, slots=True, kw_only=True)
class Shipped:
    """All fitted coefficients. ``all_reduce`` is by (accelerator, engine), then by ranks.

    ``borrowing`` is the spread added when coefficients are borrowed: from another ``accelerator``, another ``engine``,
    or the ``median`` of all accelerators. ``step_overhead_s`` is by engine.
    """

    fit: Mapping[str, str]
    entries: tuple[Entry, ...]
    all_reduce: Mapping[tuple[str, str], Mapping[int, AllReduce]]
    small: SmallKernels
    step_overhead_s: Mapping[str, float]
    borrowing: Mapping[str, Spread]
    valid_range: ValidRange
    cards: Cards = field(default_factory=Cards)

    @property
    def accelerators(self) -> tuple[str, ...]:
        """Accelerators that were measured."""
        return tuple(dict.fromkeys(each.accelerator for each in self.entries))

    @property
    def engines(self) -> tuple[str, ...]:
        """Engines that were measured."""
        return tuple(dict.fromkeys(each.engine for each in self.entries))

    def entry(self, accelerator: str, engine: str, form: str) -> Entry | None:
        """The entry of that accelerator, engine and format, if there is one."""
        wanted = (accelerator, engine, form)
        return next((each for each in self.entries if (each.accelerator, each.engine, each.form) == wanted), None)


@lru_cache(maxsize=1)
def shipped() -> Shipped:
    """The package's own coefficients, read once."""
    return replace(from_json(_document(FILE)), cards=cards_from_json(_document(CARDS_FILE)))


def _document(name: str) -> Any:
    return json.loads(files("servewise.steptime").joinpath(name).read_text("utf-8"))


def cards_from_json(document: Mapping[str, Any]) -> Cards:
    """What was fitted for single cards, as ``benchmarks.accuracy.fit_cards`` writes it."""
    return Cards(entries=tuple(map(_entry, document["entries"])), all_reduce=_curves(document["all_reduce"]))


def from_json(document: Mapping[str, Any]) -> Shipped:
    """The coefficients in the form in which ``to_json`` writes them."""
    return Shipped(
        fit=document["fit"],
        entries=tuple(_entry(each) for each in document["entries"]),
        all_reduce=_curves(document["all_reduce"]),
        small=SmallKernels(**document["small_kernels"]),
        step_overhead_s=document["step_overhead_s"],
        borrowing={name: Spread(**each) for name, each in document["borrowing"].items()},
        valid_range=ValidRange(**{name: (low, high) for name, (low, high) in document["valid_range"].items()}),
    )


def _curves(rows: Sequence[Mapping[str, Any]]) -> Mapping[tuple[str, str], Mapping[int, AllReduce]]:
    curves: dict[tuple[str, str], dict[int, AllReduce]] = {}
    for each in rows:
        knots = tuple(Knot(size, seconds) for size, seconds in zip(each["bytes"], each["seconds"], strict=True))
        curves.setdefault((each["accelerator"], each["engine"]), {})[each["ranks"]] = AllReduce(knots)
    return curves


def _entry(document: Mapping[str, Any]) -> Entry:
    attention = document["attention"]
    return Entry(
        accelerator=document["accelerator"],
        engine=document["engine"],
        version=document["version"],
        form=document["form"],
        gemm=GemmCoefficients(**document["gemm"]),
        attention=AttentionCoefficients(
            decode=DecodeAttention(**attention["decode"]),
            multi_head=DecodeAttention(**attention["multi_head"]),
            **{name: value for name, value in attention.items() if name not in ("decode", "multi_head")},
        ),
        spread=Spread(**document["spread"]),
        errors=document["errors"],
        stands_for=tuple(document.get("stands_for", ())),
        layer_gap_s=document.get("layer_gap_s", 0.0),
    )
