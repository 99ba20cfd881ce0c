"""The conditions of a figure: no latency or throughput leaves the program without them."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """On what, with what and at which load a figure holds.

    ``hardware`` names the accelerator and how many; ``load`` is the batch, the concurrency or the rate;
    ``lengths`` are the context, or the input and output lengths, in tokens; ``precision`` covers weights,
    KV cache and activations. ``experts`` says how popular experts that are spread over ranks are. The rest is there
    where it applies.
    """

    hardware: str
    load: str
    lengths: str
    precision: str
    model: str | None = None
    parallelism: str | None = None
    experts: str | None = None
    engine: str | None = None
    estimator: str | None = None
    policy: str | None = None
    workload: str | None = None
    seeds: tuple[int, ...] | None = None
    version: str | None = None

    def to_json(self) -> dict[str, object]:
        """The conditions that apply, by name."""
        pairs = ((field.name, getattr(self, field.name)) for field in fields(self))
        return {name: list(value) if isinstance(value, tuple) else value for name, value in pairs if value is not None}

    def at(self, *, load: str | None = None, lengths: str | None = None) -> Conditions:
        """The same conditions at another load or other lengths."""
        return replace(self, load=load or self.load, lengths=lengths or self.lengths)

    def __str__(self) -> str:
        """One line for captions: ``Llama-2-13B on 1 x A100 80GB, bf16 weights, ...``."""
        head = f"{self.model} on {self.hardware}" if self.model else self.hardware
        parts = [head, self.parallelism, self.precision, self.engine, self.policy, self.load, self.lengths]
        return ", ".join(part for part in parts if part)
