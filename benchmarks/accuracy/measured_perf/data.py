"""The published figures as they stand, and which of them are rates that a step's time predicts."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

DATA = Path(__file__).parents[2] / "data" / "measured_perf"

# A metric that one step (or one whole prompt) explains.
DECODE = {"decode_tokens_per_s", "decode_tokens_per_s_total", "decode_ms_per_step", "median_itl_ms"}
PREFILL = {"prefill_tokens_per_s", "prefill_ms", "ttft_ms"}
GENERATION = {"output_tokens_per_s_per_gpu"}  # a static batch: its prompts and all its steps


@dataclass(frozen=True)
class Row:
    """One published figure."""

    number: int  # line of rows.csv
    source: str
    hardware: str
    accelerators: int
    parallelism: str
    model: str
    weights: str
    kv: str
    engine: str
    load: str
    prompt: str
    output: str
    metric: str
    value: str
    kind: str
    note: str

    @property
    def batch(self) -> int | None:
        """Sequences at once, where the load is a plain number."""
        return int(self.load) if self.load.isdigit() else None

    @property
    def prompt_tokens(self) -> int:
        """Prompt tokens; "short" and "~8" are some ten."""
        found = re.search(r"\d+", self.prompt)
        return int(found[0]) if found else 10

    @property
    def output_tokens(self) -> int:
        """Tokens generated; 256 where the source does not say."""
        return int(self.output) if self.output.isdigit() else 256


def rows() -> Iterator[Row]:
    """Every published figure."""
    with (DATA / "rows.csv").open(encoding="utf-8") as file:
        for number, each in enumerate(csv.DictReader(file), 2):
            yield Row(
                number=number,
                source=each["source"],
                hardware=each["hardware"],
                accelerators=int(each["n_gpu"] or 1),
                parallelism=each["parallelism"],
                model=each["model"],
                weights=each["weight_precision"],
                kv=each["kv_precision"],
                engine=each["engine"],
                load=each["batch_or_concurrency"],
                prompt=each["input_len"],
                output=each["output_len"],
                metric=each["metric"],
                value=each["value"],
                kind=each["kind"],
                note=each["note"],
            )


def left_out(row: Row) -> str | None:
    """Why a figure is not held against a step's time; None where it is."""
    if row.kind != "measured":
        return f"not a measurement but: {row.kind}"
    if row.batch is not None and row.source == "trtllm-0.5-0.6" and row.metric == "output_tokens_per_s":
        return None if row.accelerators == 1 else "whether it is of all accelerators or of one is not certain"
    if row.metric not in DECODE | PREFILL | GENERATION and row.batch == 1:
        return "no rate of a step (bandwidth, duration, out of memory, whole run)"
    if row.metric not in DECODE | PREFILL | GENERATION or row.batch is None:
        return "a load with queues or unknown batch (open loop, offline, closed loop over prompts)"
    return _doubted(row, row.batch)


def _doubted(row: Row, batch: int) -> str | None:
    if "MTP" in row.engine:
        return "speculative decoding: acceptance not given"
    if row.source == "rtx6kpro-qwen3.5" and batch > 1 and row.prompt_tokens:
        return "one prompt shared by all sequences (128 x 131,072 tokens of their own would take 258 GB a card)"
    return "the source's own figure breaks its trend (marked doubtful there)" if "DOUBTFUL" in row.note else None
