"""Records made by hand for the tests."""

from __future__ import annotations

from array import array

from servewise.conditions import Conditions
from servewise.records.columns import FAILED, RequestColumns, StepColumns, TokenTimes
from servewise.records.run_directory import RunRecord

NAN = float("nan")
CONDITIONS = Conditions(
    hardware="1 x A100", load="2 requests/s", lengths="512 in, 64 out", precision="bf16", seeds=(1, 2)
)


def requests() -> RequestColumns:
    """Three requests: two completed, one failed before its first token."""
    return RequestColumns(
        id=array("q", [0, 1, 2]),
        scheduled_s=array("d", [0.0, 0.5, 1.0]),
        sent_s=array("d", [0.0, 0.5, 1.1]),
        admitted_s=array("d", [0.0, 0.6, NAN]),
        first_token_s=array("d", [0.25, 0.75, NAN]),
        end_s=array("d", [1.0, 0.75, 1.5]),
        prompt_tokens=array("q", [10, 20, 30]),
        cached_tokens=array("q", [0, 16, 0]),
        output_tokens=array("q", [4, 1, 0]),
        preemptions=array("q", [1, 0, 0]),
        status=array("q", [0, 0, FAILED]),
    )


def measured() -> RequestColumns:
    """The same with token times and the failure's text."""
    found = requests()
    found.token_times = TokenTimes()
    for times in ([0.25, 0.5, 0.5, 1.0], [0.75], []):
        found.token_times.append(times)
    found.errors = {2: 'connection reset, "quoted", µ'}
    return found


def steps() -> StepColumns:
    """Two rows of steps."""
    return StepColumns(
        start_s=array("d", [0.0, 0.25]),
        seconds=array("d", [0.25, 0.75]),
        steps=array("q", [1, 3]),
        decode_sequences=array("q", [0, 1]),
        prefill_tokens=array("q", [10, 0]),
        running=array("q", [1, 1]),
        waiting=array("q", [0, 2]),
        kv_tokens=array("q", [0, 10]),
        active=array("q", [1, 1]),
    )


def simulated_run() -> RunRecord:
    """A simulated run."""
    return RunRecord(
        kind="simulated", conditions=CONDITIONS, requests=requests(), steps=steps(), slots=8, seed=7, command="simulate"
    )
