"""Measured and simulated run directories made by hand, of a server with an exact speed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from tests.measure.exchanges import exchange

from servewise.caveats import Caveat
from servewise.conditions import Conditions
from servewise.measure.outcome import Outcome
from servewise.measure.recording import Recorder
from servewise.records.run_directory import RunRecord, write_run

CONDITIONS = Conditions(
    hardware="1 x test card",
    load="4 streams",
    lengths="10-100 in, 16 out",
    precision="bf16",
    model="test-model",
    engine="vllm 0.32",
    seeds=(1,),
)


def measured(
    directory: Path,
    *,
    tpot_s: float = 0.01,
    streams: int = 4,
    count: int = 240,
    seed: int | None = 1,
    noise: int = 0,
    repeat: int | None = None,
    conditions: dict[str, Any] | None = None,
    caveats: tuple[Caveat, ...] = (),
    failed: int = 0,
    details: dict[str, Any] | None = None,
) -> Path:
    """Write a closed loop of ``streams``: 16 tokens each, TPOT about ``tpot_s``, TTFT ten times that; the path."""
    rng, recorder = np.random.default_rng(noise), Recorder()
    prompts = np.random.default_rng(5).integers(10, 100, count)
    free = np.zeros(streams)
    for serial in range(count):
        start, pace = float(free[serial % streams]), tpot_s * rng.lognormal(0, 0.05)
        first = start + 10 * pace
        times = [(first + token * pace, 1) for token in range(16)]
        end = times[-1][0]
        bad = serial < failed
        recorder.add(
            exchange(
                () if bad else times,
                serial=serial,
                scheduled=start,
                outcome=Outcome.RESET if bad else Outcome.COMPLETED,
                reason="connection reset" if bad else "",
                prompt_tokens=int(prompts[serial]),
                output_tokens=0 if bad else 16,
                end_s=end,
                counted_by="usage",
            )
        )
        free[serial % streams] = end
    run = RunRecord(
        kind="measured",
        conditions=Conditions(
            **{
                **CONDITIONS.to_json(),
                "load": f"{streams} stream{'s' * (streams > 1)}",
                "seeds": (seed,),
                **(conditions or {}),
            }
        ),
        requests=recorder.columns,
        seed=seed,
        command="servewise bench",
        caveats=caveats,
        details={"concurrency": streams, "rate_per_s": None}
        | ({} if repeat is None else {"repeat": repeat})
        | recorder.details()
        | (details or {}),
    )
    write_run(directory, run)
    return directory
