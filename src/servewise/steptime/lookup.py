"""Which coefficients a deployment takes: its own, its kin's, or the median of all; said in caveats."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from statistics import median
from typing import Any, TypeVar

from servewise.caveats import Caveat
from servewise.deployment.deployment import Deployment
from servewise.hardware.accelerator import FALLBACK, Accelerator
from servewise.modelspec.spec import AttentionKind, ModelSpec
from servewise.steptime.coefficients import AttentionCoefficients, Coefficients
from servewise.steptime.flash_attention import tiled_decode
from servewise.steptime.lent_messages import MEDIAN, all_reduce, with_own
from servewise.steptime.matmul_rates import borrowed_share
from servewise.steptime.shipped import Entry, Shipped, Spread, shipped
from servewise.steptime.work import compute_formats

BORROWED = "borrowed-coefficients"
OUTSIDE = "outside-calibrated-range"
CURE = "measure the server and calibrate on it, or give its measured steps with --estimator FILE"
NEAREST_ENGINE = "vllm"  # for engines without measurements
STAGED = "messages-through-host"
LOGIT_BYTES = 2.0  # engines gather the logits in 16 bits

Numbers = TypeVar("Numbers")


@dataclass(frozen=True, slots=True)
class Found:
    """Coefficients for a deployment with their doubts: caveats, spread, and standard errors by ``part.field``."""

    coefficients: Coefficients
    caveats: tuple[Caveat, ...]
    spread: Spread
    errors: Mapping[str, float]


def coefficients_for(deployment: Deployment, table: Shipped | None = None) -> Found:
    """The coefficients of ``deployment``'s accelerator and engine, or of the nearest that were measured.

    An accelerator without measurements takes those of its ``kin`` in the catalogue, one without kin the median of all;
    efficiencies carry over (that of FLOPs by the shares of their peaks that both reach, where known), peaks and
    bandwidths are its own.
    """
    table = table or shipped()
    accelerator = deployment.accelerator
    engine, caveats, spreads = _engine(deployment.engine, table)
    source = next((each for each in (accelerator.name, accelerator.kin) if each in table.accelerators), MEDIAN)
    linear, attention = _linear_form(deployment), "fp8" if deployment.kv.bits < 12 else "bf16"
    products, missing = _measured(table, accelerator.name, source, engine, linear)
    kernels, absent = _measured(table, accelerator.name, source, engine, attention)
    lenders = [each.accelerator for each in (products, kernels) if each.accelerator != accelerator.name]
    if lenders:
        caveats.append(_borrowed(accelerator, lenders[0]))
        spreads.append(table.borrowing[MEDIAN if lenders[0] == MEDIAN else "accelerator"])
    elif accelerator.overridden:
        caveats.append(_overridden(accelerator))
    caveats += [each for each in (missing, absent, _beyond_llama(deployment.model)) if each]
    spreads += [products.spread, kernels.spread][: 1 if products is kernels else 2]
    curves = table.cards.curves(accelerator.name, engine)
    together = deployment.parallelism.expert or deployment.parallelism.tensor * deployment.parallelism.pipeline > 1
    caveats += [_staged(accelerator)] if curves and together else []
    coefficients = Coefficients(
        title=f"{products.accelerator}, {engine} {products.version}".strip(),
        gemm=replace(products.gemm, flop_efficiency=_own(products.gemm.flop_efficiency, accelerator, products)),
        attention=replace(
            kernels.attention, flop_efficiency=_own(kernels.attention.flop_efficiency, accelerator, kernels)
        ),
        small=replace(table.small, layer_s=table.small.layer_s + products.layer_gap_s),
        all_reduce=with_own(all_reduce(table, source, engine, accelerator), curves),
        step_overhead_s=table.step_overhead_s.get(engine, 0.0),
        valid_range=table.valid_range,
        tiled=tiled_decode(accelerator.name, base_engine(deployment.engine)),
        logit_bytes=LOGIT_BYTES,
    )
    errors = {name: size for name, size in products.errors.items() if name.startswith("gemm.")}
    errors |= {name: size for name, size in kernels.errors.items() if not name.startswith("gemm.")}
    return Found(coefficients, tuple(dict.fromkeys(caveats)), _joined(spreads), errors)


def _measured(table: Shipped, accelerator: str, source: str, engine: str, form: str) -> tuple[Entry, Caveat | None]:
    """What was measured on the card itself in that form, else what ``source`` lends."""
    card = table.cards.entry(accelerator, engine, form)
    return (card, None) if card is not None else _entry(table, source, engine, form)


def _own(efficiency: float, accelerator: Accelerator, entry: Entry) -> float:
    """A FLOP efficiency of ``entry`` for ``accelerator``."""
    return min(1.0, efficiency * borrowed_share(accelerator.name, entry.accelerator))


def _staged(accelerator: Accelerator) -> Caveat:
    message = f"messages between {accelerator.title} cards are timed as passing through the host's memory"
    return Caveat(
        STAGED, message, "where cards reach each other directly (ACS and IOMMU off) they take half: calibrate"
    )


def base_engine(name: str) -> str:
    """The engine without its version.

    >>> base_engine("vllm-0.19")
    'vllm'
    """
    return name.partition("-")[0]


def _engine(name: str, table: Shipped) -> tuple[str, list[Caveat], list[Spread]]:
    base = base_engine(name)
    if base in table.engines:
        return base, [], []
    message = f"no step times of {name} were measured: those of {NEAREST_ENGINE} are used"
    return NEAREST_ENGINE, [Caveat(BORROWED, message, CURE)], [table.borrowing["engine"]]


def _borrowed(accelerator: Accelerator, source: str) -> Caveat:
    of = "the median of all that were measured" if source == MEDIAN else f"its kin {source}"
    message = f"no step times of {accelerator.name} were measured: efficiencies of {of}, its own peaks and bandwidth"
    return Caveat(BORROWED, message, CURE)


def _overridden(accelerator: Accelerator) -> Caveat:
    given = ", ".join(sorted(accelerator.overridden))
    message = (
        f"efficiencies of {accelerator.name} were measured with the catalogue's numbers, not with the {given} given"
    )
    return Caveat(BORROWED, message, CURE)


def _linear_form(deployment: Deployment) -> str:
    """The class of the layers' products: ``fp8`` where the chip computes in 8 bits or fewer, else ``bf16``."""
    peaks = deployment.accelerator.peaks
    name: str | None = compute_formats(deployment).linear
    while name is not None and name not in peaks:
        name = FALLBACK.get(name)
    return "fp8" if name in ("fp8", "int8", "fp6", "fp4") else "bf16"


def _entry(table: Shipped, source: str, engine: str, form: str) -> tuple[Entry, Caveat | None]:
    for each in (form, "bf16"):
        found = median_entry(table, engine, each) if source == MEDIAN else table.entry(source, engine, each)
        if found is not None:
            message = f"no {form} kernels of {engine} on {source} were measured: those of {each} are used"
            return found, None if each == form else Caveat(BORROWED, message, CURE)
    raise AssertionError("every measured accelerator and engine has bf16 coefficients")


def median_entry(table: Shipped, engine: str, form: str, without: str = "") -> Entry:
    """The median of each coefficient over the accelerators (save ``without``) measured with ``engine`` in ``form``."""
    known = [e for e in table.entries if (e.engine, e.form) == (engine, form) and e.accelerator != without]
    attention = [each.attention for each in known]
    return Entry(
        accelerator=MEDIAN,
        engine=engine,
        version=known[-1].version,
        form=form,
        gemm=_median([each.gemm for each in known]),
        attention=AttentionCoefficients(
            decode=_median([each.decode for each in attention]),
            multi_head=_median([each.multi_head for each in attention]),
            prefill_launch_s=median(each.prefill_launch_s for each in attention),
            flop_efficiency=median(each.flop_efficiency for each in attention),
            activation_factor=median(each.activation_factor for each in attention),
        ),
        spread=_median([each.spread for each in known]),
        errors={name: median(each.errors.get(name, 0.0) for each in known) for name in known[0].errors},
    )


def _median(values: Sequence[Numbers]) -> Numbers:
    kind: Any = type(values[0])
    made: Numbers = kind(**{f.name: median(getattr(each, f.name) for each in values) for f in fields(kind)})
    return made


def _beyond_llama(model: ModelSpec) -> Caveat | None:
    """A caveat for layers that no measured model has."""
    strange = {each.kind.value for _, each in model.attentions() if each.kind is not AttentionKind.FULL}
    strange |= {"sparse" for _, each in model.attentions() if each.attended_tokens}
    strange |= {"routed experts" for group in model.layers if group.feed_forward.experts}
    if not strange:
        return None
    message = f"fitted on dense Llama models with full attention; {', '.join(sorted(strange))} layers are extrapolated"
    return Caveat(OUTSIDE, message, CURE)


def _joined(spreads: Sequence[Spread]) -> Spread:
    """Independent spreads together; of two formats' the larger share counts once each."""
    return Spread(
        decode=math.sqrt(sum(each.decode**2 for each in spreads)),
        prefill=math.sqrt(sum(each.prefill**2 for each in spreads)),
    )
