"""The measured points: what ran where under which load, and the mean latencies that came of it."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path

DATA = Path(__file__).parents[2] / "data" / "e2e_measured"
MISLABELLED = "Llama-3.1-8B-Instruct-FP8"
MODELS = {
    "Llama-3.1-70B": "llama-3.1-70b",
    "Llama-3.1-8B-Instruct": "llama-3.1-8b",
    "Qwen3-32B": "qwen3-32b",
    "Qwen3-32B-NVFP4": "qwen3-32b",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One measured run: means over its requests [s]; ``peer_*`` is AIConfigurator's prediction, where it gave one."""

    accelerator: str
    engine: str
    version: str
    model: str
    tensor: int
    dtype: str
    prompt_tokens: int
    output_tokens: int
    concurrency: int
    ttft_s: float
    tpot_s: float
    measured: str
    peer_ttft_s: float | None
    peer_tpot_s: float | None

    @property
    def family(self) -> str:
        """Who ran what: points of one family differ in ranks, lengths and load alone."""
        return " ".join(filter(None, (self.accelerator, self.engine, self.version, self.model, self.dtype)))

    @property
    def public(self) -> bool:
        """Whether the run's settings are public: a run of InferenceX."""
        return self.measured == "2025-10-29"

    @property
    def name(self) -> str:
        """The point in one line."""
        lengths = f"{self.prompt_tokens}/{self.output_tokens}"
        return f"{self.family} TP{self.tensor} {lengths} x{self.concurrency} {self.measured}".strip()


@cache
def points() -> tuple[Point, ...]:
    """Every point but the mislabelled ones, in the file's order."""
    with (DATA / "points.csv").open(encoding="utf-8") as file:
        return tuple(_point(row) for row in csv.DictReader(file) if row["model"] != MISLABELLED)


def _point(row: dict[str, str]) -> Point:
    return Point(
        accelerator=row["accelerator"],
        engine=row["engine"],
        version=row["version"],
        model=row["model"],
        tensor=int(row["tensor"]),
        dtype=row["dtype"],
        prompt_tokens=int(row["prompt_tokens"]),
        output_tokens=int(row["output_tokens"]),
        concurrency=int(row["concurrency"]),
        ttft_s=float(row["ttft_ms"]) / 1e3,
        tpot_s=float(row["tpot_ms"]) / 1e3,
        measured=row["measured"],
        peer_ttft_s=_seconds(row["peer_ttft_ms"]),
        peer_tpot_s=_seconds(row["peer_tpot_ms"]),
    )


def _seconds(milliseconds: str) -> float | None:
    return float(milliseconds) / 1e3 if milliseconds else None
