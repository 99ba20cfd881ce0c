"""A measurement in words and plain JSON: its load, its lengths, its options, its search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from math import isfinite
from typing import Any

from servewise.ask.bench_options import Asked, BenchOptions
from servewise.caveats import Caveat
from servewise.measure.bench.campaign import MOST_FAILED
from servewise.measure.bench.condition import Condition
from servewise.measure.bench.search import Knee


def loads_of(conditions: Sequence[Condition], wanted: Asked) -> str:
    """All conditions' loads in one line."""
    values = ", ".join(f"{each.value:g}" for each in conditions)
    if conditions[0].kind == "rate":
        kind = "the trace at" if wanted.load.trace else f"open loop, {wanted.options.arrivals} arrivals,"
        return f"{kind} {values} requests/s"
    if conditions[0].kind == "concurrency":
        return f"closed loop of {values} {'stream' if values == '1' else 'streams'}"
    return ", ".join(map(str, conditions))


def shown(options: BenchOptions) -> dict[str, Any]:
    """The options as plain JSON, without keys and without the values of headers."""
    found = {name: value for name, value in asdict(options).items() if name != "api_key" and value is not None}
    found["headers"] = [each.partition(":")[0] for each in options.headers]
    return found


def load_of(condition: Condition) -> str:
    """One condition's load."""
    return f"closed loop of {condition}" if condition.kind == "concurrency" else str(condition)


def lengths_of(wanted: Asked) -> str:
    """How long prompts and answers are."""
    load = wanted.load
    if load.trace is not None:
        means = load.trace.mean_prompt_tokens, load.trace.mean_output_tokens
        return f"{means[0]:,.0f} in, {means[1]:,.0f} out (means of the trace)"
    given = f"prompts of {wanted.options.prompts}" if load.file_prompts else f"{load.input_tokens} in"
    return f"{given}, {load.output_tokens} out"


def knee_json(knee: Knee, wanted: Asked) -> dict[str, Any]:
    """What a search found, and what it took for granted."""
    return {
        "of": wanted.search,
        "best": knee.best,
        "knee": [knee.low, knee.high if isfinite(knee.high) else None],
        "monotonic": knee.monotonic,
        "tries": [
            {"level": each.level, "kept": each.kept, "repeats": each.repeats, "held": each.held} for each in knee.tries
        ],
        "assumes": "what fails at a level fails at every higher one",
        "most_failed_share": MOST_FAILED,
    }


def search_caveats(knee: Knee | None) -> tuple[Caveat, ...]:
    """That the search's premise did not hold."""
    if knee is None or knee.monotonic:
        return ()
    message = "a level held the SLO above one that failed it: the highest load is known only as the knee says"
    return (Caveat("not-monotonic", message, "longer runs or more --repeats"),)
