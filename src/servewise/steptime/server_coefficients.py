"""The few coefficients of one server as a whole, fitted to what it did: kernels, scheduler and front end together."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

SHARPNESS = 2.0  # of the smooth maximum of memory and compute: overlap as it is on every GPU that was measured (1.9-10)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerCoefficients:
    """What a server makes of its accelerator. A step takes

        ``step_s`` + ``sequence_s`` x sequences that get a token
        + smooth maximum of weight bytes / (bandwidth x ``weight_efficiency``)
                        and FLOPs / (peak x ``flop_efficiency``) x (1 + sqrt(``ramp_tokens`` / rows))
        + KV bytes / (bandwidth x ``kv_efficiency``)
        + FLOPs of prompts' query-key pairs / (peak x ``attention_efficiency``)

    ``step_s`` [s] is the scheduler, launches and messages between ranks; ``sequence_s`` [s] sampling, text and the
    stream's event; ``ramp_tokens`` the rows at which a product runs at half of ``flop_efficiency`` (kernels of few
    rows run below their peak). ``request_s`` [s] is what a request takes outside of steps (HTTP, tokenising): it adds
    to the time to first token and occupies no step.
    """

    step_s: float = 0.0
    sequence_s: float = 0.0
    weight_efficiency: float = 1.0
    flop_efficiency: float = 1.0
    ramp_tokens: float = 0.0
    kv_efficiency: float = 1.0
    attention_efficiency: float = 1.0
    request_s: float = 0.0

    def to_dict(self) -> dict[str, float]:
        """The coefficients by name."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def ramped(self, rows: float) -> float:
        """``rows`` as many as count: rows x (1 + sqrt(``ramp_tokens`` / rows)).

        >>> ServerCoefficients(ramp_tokens=64).ramped(64)
        128.0
        """
        return rows + math.sqrt(self.ramp_tokens * rows)

    def slower(self, times: float) -> ServerCoefficients:
        """Of a server that takes ``times`` as long for everything; no efficiency goes above 1.

        >>> ServerCoefficients(step_s=0.01, kv_efficiency=0.5).slower(2.0).kv_efficiency
        0.25
        """
        overheads = {name: getattr(self, name) * times for name in ("step_s", "sequence_s", "request_s")}
        efficiencies = {name: min(1.0, getattr(self, name) / times) for name in EFFICIENCIES}
        return replace(self, **overheads, **efficiencies)


COEFFICIENTS = tuple(each.name for each in fields(ServerCoefficients))
EFFICIENCIES = tuple(name for name in COEFFICIENTS if name.endswith("_efficiency"))
# No coefficient lies outside: an efficiency above 1 would beat the accelerator, a step over 100 s is none.
BOUNDS: Mapping[str, tuple[float, float]] = {
    **dict.fromkeys(EFFICIENCIES, (1e-4, 1.0)),
    **dict.fromkeys(("step_s", "sequence_s", "request_s"), (0.0, 100.0)),
    "ramp_tokens": (0.0, 1e6),
}
