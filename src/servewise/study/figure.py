"""The study's two figures as data, drawn from its tables: ours beside the study's, panel by panel."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from servewise.study.row import Interval, StudyRow, StudyTable

Scale = Literal["linear", "log"]


@dataclass(frozen=True, slots=True)
class Series:
    """One line: ``y`` ours and ``study`` the study's at each ``x``; ``interval`` ours, where chance has a part."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    study: tuple[float, ...]
    interval: tuple[Interval, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One set of axes with its lines."""

    name: str
    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    x_scale: Scale = "linear"
    y_scale: Scale = "linear"


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyFigure:
    """One figure of the study."""

    name: str
    title: str
    panels: tuple[Panel, ...]

    def to_json(self) -> dict[str, Any]:
        """The figure as plain values."""
        return asdict(self)


def figures(tables: Sequence[StudyTable]) -> tuple[StudyFigure, ...]:
    """Both figures, from the tables that ``every_table.tables`` made."""
    by_name = {table.name: table for table in tables}
    return (
        StudyFigure(
            name="cache_batch_step",
            title="KV cache, batch size and step time (13B model, 80 GB device, the study's round inputs)",
            panels=tuple(_first(by_name)),
        ),
        StudyFigure(
            name="batching_speculation_quantisation",
            title="Batching policies, speculative decoding and quantisation (simulated, closed form, tiny model)",
            panels=tuple(_second(by_name)),
        ),
    )


def _first(tables: dict[str, StudyTable]) -> Iterable[Panel]:
    work, largest, step = tables["cache_work"], tables["largest_batch"], tables["decode_step"]
    yield Panel(
        name="positions",
        title="Positions processed after a 5-token prompt",
        x_label="tokens generated",
        y_label="positions",
        x_scale="log",
        y_scale="log",
        series=tuple(_line(name, work.select(f"positions, {name}"), "tokens") for name in ("no cache", "cache")),
    )
    yield Panel(
        name="largest_batch",
        title="Largest batch that fits",
        x_label="context (tokens)",
        y_label="sequences",
        x_scale="log",
        y_scale="log",
        series=tuple(_lines(largest.select("largest batch"), "variant", "context_tokens")),
    )
    yield Panel(
        name="step_time",
        title="Decode step at 2,048 tokens",
        x_label="batch",
        y_label="time (ms)",
        x_scale="log",
        y_scale="log",
        series=tuple(_line(name, step.select(name), "batch") for name in ("compute", "memory")),
    )
    yield Panel(
        name="output_rate",
        title="Output rate at 2,048 tokens",
        x_label="batch",
        y_label="tokens/s",
        x_scale="log",
        series=(_line("output rate", step.select("output rate"), "batch"),),
    )


def _second(tables: dict[str, StudyTable]) -> Iterable[Panel]:
    batching, gains, bits = tables["batching"], tables["speculation"], tables["quantisation"]
    for quantity, label in (("latency p50", "steps"), ("latency p95", "steps"), ("utilisation", "share of slots")):
        yield Panel(
            name=quantity.replace(" ", "_"),
            title=f"{quantity.capitalize()} by policy, 8 slots",
            x_label="requests per step",
            y_label=label,
            y_scale="linear" if quantity == "utilisation" else "log",
            series=tuple(_lines(batching.select(quantity), "policy", "rate_per_step")),
        )
    yield Panel(
        name="speedup",
        title="Speculative decoding at the best draft length",
        x_label="acceptance rate",
        y_label="speed-up",
        series=tuple(_lines(gains.select("speed-up"), "draft_cost", "acceptance", prefix="draft cost ")),
    )
    for quantity, label in (("KL", "KL from the 16-bit model (nats)"), ("top-1 agreement", "share of positions")):
        yield Panel(
            name=quantity.replace(" ", "_").replace("-", "_").lower(),
            title=f"Quantisation of the tiny model: {quantity}",
            x_label="bits",
            y_label=label,
            y_scale="log" if quantity == "KL" else "linear",
            series=tuple(_lines(bits.select(quantity), "target", "bits")),
        )


def _lines(rows: Sequence[StudyRow], by: str, x: str, prefix: str = "") -> Iterable[Series]:
    """One line for each value that the rows' case has under ``by``, in the order in which they come."""
    for each in dict.fromkeys(row.case[by] for row in rows):
        yield _line(f"{prefix}{each}", [row for row in rows if row.case[by] == each], x)


def _line(name: str, rows: Sequence[StudyRow], x: str) -> Series:
    intervals = [row.interval for row in rows if row.interval is not None]
    return Series(
        name=name,
        x=tuple(float(row.case[x]) for row in rows),
        y=tuple(float(row.ours) for row in rows),
        study=tuple(row.study for row in rows),
        interval=tuple(intervals) if rows and len(intervals) == len(rows) else None,
    )
