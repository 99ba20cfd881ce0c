"""The layouts of traces: which column or key is the arrival, the prompt, the output, the blocks, and in which unit.

A new layout is one more entry, recognised by its names.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache

from servewise.errors import InputError

EPOCH = datetime(2020, 1, 1, tzinfo=UTC)  # near enough that a double holds 0.1 µs
CLOCK = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(\.\d+)?(Z|[+-]\d\d:\d\d)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """One layout. ``zero_output`` says why a row without output tokens is left out; empty: such a row is wrong.

    ``runs``: the blocks are pairs [first, last] of consecutive ids, both included.
    """

    name: str
    arrival: str
    prompt: str
    output: str
    seconds: Callable[[str | float], float]
    blocks: str | None = None
    block_tokens: int | None = None
    runs: bool = False
    zero_output: str = ""

    @property
    def needs(self) -> frozenset[str]:
        """The names by which the layout is recognised, in lower case."""
        return frozenset(name.lower() for name in (self.arrival, self.prompt, self.output))


def scaled(unit_s: float) -> Callable[[str | float], float]:
    """A clock that counts in units of ``unit_s`` seconds."""
    return lambda value: float(value) * unit_s


def wall_clock(value: str | float) -> float:
    """Seconds since 2020 of a date and time with any number of digits of a second; without zone it is UTC.

    >>> round(wall_clock("2023-11-16 18:17:04.0319600") - wall_clock("2023-11-16 18:17:03.9799600"), 7)
    0.052
    """
    match = CLOCK.fullmatch(str(value).strip())
    if match is None:
        raise ValueError("not a date and time")
    day, time, fraction, zone = match.groups()
    return _whole_seconds(f"{day}T{time}{zone or '+00:00'}".replace("Z", "+00:00")) + float(f"0{fraction or '.0'}")


@lru_cache(4)
def _whole_seconds(text: str) -> float:
    return (datetime.fromisoformat(text) - EPOCH).total_seconds()


# Azure: github.com/Azure/AzurePublicDataset, AzureLLMInferenceDataset2023.md. BurstGPT: github.com/HPMLL/BurstGPT
# (README: rows with 0 response tokens are failed requests). Vidur: github.com/microsoft/vidur data/processed_traces.
CSV_LAYOUTS = (
    Layout(name="azure", arrival="TIMESTAMP", prompt="ContextTokens", output="GeneratedTokens", seconds=wall_clock),
    Layout(
        name="burstgpt",
        arrival="Timestamp",
        prompt="Request tokens",
        output="Response tokens",
        seconds=scaled(1.0),
        zero_output="failed requests (0 response tokens)",
    ),
    Layout(
        name="vidur", arrival="arrived_at", prompt="num_prefill_tokens", output="num_decode_tokens", seconds=scaled(1.0)
    ),
    Layout(name="generic", arrival="arrival_s", prompt="prompt_tokens", output="output_tokens", seconds=scaled(1.0)),
)
# Mooncake: github.com/kvcache-ai/Mooncake FAST25-release (blocks of 512 tokens, chained). vllm-run:
# github.com/casys-kaist/LLMServingSim bench/examples, lengths and chained blocks of 16 tokens.
JSONL_LAYOUTS = (
    Layout(
        name="mooncake",
        arrival="timestamp",
        prompt="input_length",
        output="output_length",
        seconds=scaled(1e-3),
        blocks="hash_ids",
        block_tokens=512,
    ),
    Layout(
        name="vllm-run",
        arrival="arrival_time_ns",
        prompt="input_toks",
        output="output_toks",
        seconds=scaled(1e-9),
        blocks="hash_ids_block16",
        block_tokens=16,
    ),
    Layout(
        name="generic",
        arrival="arrival_s",
        prompt="prompt_tokens",
        output="output_tokens",
        seconds=scaled(1.0),
        blocks="block_hashes",
        block_tokens=16,
    ),
    Layout(
        name="mooncake-runs",
        arrival="arrival_ms",
        prompt="prompt_tokens",
        output="output_tokens",
        seconds=scaled(1e-3),
        blocks="block_runs_512",
        block_tokens=512,
        runs=True,
    ),
)


def recognised(names: Iterable[str], layouts: tuple[Layout, ...], where: str) -> Layout:
    """The layout whose names are all there (any case); an InputError lists what each layout would need."""
    there = {str(name).strip().lower() for name in names}
    for layout in layouts:
        if layout.needs <= there:
            return layout
    known = " | ".join(f"{each.arrival}, {each.prompt}, {each.output}" for each in layouts)
    raise InputError(f"is no trace that is known: it has {_listed(there)}", where=where, hint=f"known are {known}")


def _listed(names: set[str]) -> str:
    shown = ", ".join(sorted(name[:30] for name in names)[:8])
    return f"the columns {shown}" if shown else "no columns"


def number(value: object) -> float:
    """``value`` as a finite number, from JSON or from the text of a CSV field; ValueError for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError("not a number")
    found = float(value)
    if not math.isfinite(found):
        raise ValueError("not finite")
    return found
