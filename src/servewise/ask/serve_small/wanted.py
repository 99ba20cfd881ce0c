"""How much is measured, with which lengths: the settings that all runs of one experiment have in common."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from servewise.ask.serve_small.variants import Variant
from servewise.measure.load.wanted import LoadWanted
from servewise.workload.lengths import Fixed, Lengths, Uniform
from servewise.workload.prefix import SharedPrefix

PROMPT, OUTPUT, PREFIX = 128, 64, 512
MIXED = Uniform(16, 112)  # the same mean as OUTPUT
LEAST = 10  # requests of a run, however few streams; a calibration takes no fewer


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """``requests`` a stream and run, ``repeats`` of each run, nothing new sent after ``most_s`` [s]."""

    model: str
    threads: int
    requests: int = 2
    repeats: int = 1
    most_s: float = 30.0
    seed: int = 0

    @property
    def context_tokens(self) -> int:
        """What the longest request takes, rounded up to whole blocks."""
        return -(-(PREFIX + PROMPT + MIXED.high) // 64) * 64

    def load(self, variant: Variant, streams: int, requests: int | None = None) -> LoadWanted:
        """The load of one run, or of ``requests`` of its kind."""
        rounds = self.requests * (2 if variant.mixed else 1)  # answers of mixed lengths need more to settle
        whole = max(streams * rounds, -(-LEAST // streams) * streams)
        return LoadWanted(
            input_tokens=Fixed(PROMPT),
            output_tokens=self.outputs(variant),
            requests=whole if requests is None else requests,
            prefix=SharedPrefix(1, PREFIX) if variant.shared else None,
        )

    def outputs(self, variant: Variant) -> Lengths:
        """How long answers are."""
        return MIXED if variant.mixed else Fixed(OUTPUT)

    def lengths(self, variant: Variant) -> str:
        """For conditions."""
        prefix = f"{PREFIX} shared + " if variant.shared else ""
        return f"{prefix}{PROMPT} tokens in, {self.outputs(variant)} out"

    def to_json(self) -> dict[str, Any]:
        """What two experiments in one folder must agree in; ``repeats`` may grow."""
        return {name: value for name, value in asdict(self).items() if name != "repeats"}
