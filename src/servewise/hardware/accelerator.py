"""An accelerator as arithmetic needs it; every number knows its source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from servewise.errors import InputError
from servewise.tables import Unit, as_number

BYTES = Unit("bytes", 1e8, 1e16, "80 GB is 80e9")
BYTES_PER_S = Unit("bytes/s", 1e8, 1e16, "2,039 GB/s is 2039e9")
FLOPS = Unit("FLOP/s", 1e9, 1e19, "312 TFLOP/s is 312e12")
SECONDS = Unit("s", 1e-9, 1.0, "10 µs is 10e-6")

Standing = Literal["measured", "vendor", "assumed"]

# Where a chip has no unit for a format, the format is expanded and computed in the next one.
FALLBACK = {
    "fp4": "fp8",
    "fp6": "fp8",
    "fp8": "bf16",
    "int8": "bf16",
    "bf16": "fp16",
    "fp16": "fp32",
    "tf32": "fp32",
    "fp64": "fp32",
}


@dataclass(frozen=True, slots=True)
class Quantity:
    """A catalogue number: value in SI, unit, source, date of the source, standing."""

    value: float
    unit: str
    source: str
    date: str
    standing: Standing


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """The link between accelerators of one node: bytes/s of one direction per accelerator, and seconds a message."""

    name: str
    bandwidth: Quantity
    latency: Quantity


@dataclass(frozen=True, slots=True, kw_only=True)
class Accelerator:
    """One device: memory as it reports it [bytes], memory bandwidth [bytes/s], dense peak by format [FLOP/s]."""

    name: str
    title: str
    memory: Quantity
    bandwidth: Quantity
    peaks: Mapping[str, Quantity]
    link: Link | None = None
    kin: str | None = None  # the catalogue name of the nearest measured accelerator, where this one has none
    notes: str = ""
    overridden: frozenset[str] = field(default_factory=frozenset)

    @property
    def memory_bytes(self) -> float:
        """Memory as the device reports it [bytes]."""
        return self.memory.value

    @property
    def bandwidth_bytes_per_s(self) -> float:
        """Memory bandwidth [bytes/s]."""
        return self.bandwidth.value

    def peak_flops(self, compute: str) -> float:
        """Dense peak for operands in ``compute``, or in the format that the chip expands it to [FLOP/s]."""
        name: str | None = compute
        while name is not None:
            if name in self.peaks:
                return self.peaks[name].value
            name = FALLBACK.get(name)
        raise InputError(f"{self.name} has no peak for {compute}", hint="give --peak-flops")

    def with_overrides(
        self, *, peak_flops: float | None = None, bandwidth: float | None = None, memory: float | None = None
    ) -> Accelerator:
        """The same device with the user's own numbers in place of the catalogue's.

        ``peak_flops`` [FLOP/s] replaces every peak, ``bandwidth`` is in bytes/s, ``memory`` in bytes. Raises InputError
        for a number that no device has (80 bytes of memory: 80e9 was meant).
        """
        changed = replace(
            self,
            memory=_given(memory, self.memory, BYTES, "--memory"),
            bandwidth=_given(bandwidth, self.bandwidth, BYTES_PER_S, "--bandwidth"),
            peaks={name: _given(peak_flops, each, FLOPS, "--peak-flops") for name, each in self.peaks.items()},
        )
        given = {"peak_flops": peak_flops, "bandwidth": bandwidth, "memory": memory}
        return replace(changed, overridden=frozenset(name for name, value in given.items() if value is not None))


def _given(value: float | None, old: Quantity, unit: Unit, where: str) -> Quantity:
    if value is None:
        return old
    return Quantity(as_number(value, unit, where), unit.name, "given by the user", "", "assumed")
