"""How wrong are the load client's own times here? The client against a server with an exact schedule."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from servewise.answer import Answer
from servewise.ask.numbers import whole, wholes
from servewise.caveats import Caveat
from servewise.conditions import Conditions
from servewise.measure.mock.process import running_mock
from servewise.measure.self_test.accuracy import Accuracy
from servewise.measure.self_test.kept import TOLERABLE_S, keep
from servewise.measure.self_test.trial import PLAN, TOKENS, Trial, run_trial
from servewise.units import format_seconds
from servewise.version import __version__

Progress = Callable[[int, int], None]

STREAMS = (1, 32, 256, 1024)
MOST_STREAMS = 16_384
REQUESTS = 4  # at least so many, so that one stream alone has some too
WHOLE_S = 36.0  # for all loads together, beside starting and waiting for what is under way
LATE_S = 20e-3  # a stand-in server that sends a token's gap late had too little of the machine


def self_test(
    streams: int | Iterable[int] = STREAMS,
    *,
    rounds: int = 2,
    workers: int = 1,
    progress: Progress | None = None,
    cache: Path | None = None,
) -> Answer:
    """The client's error of TTFT and TPOT at each number of ``streams``, with its CPU per token, in under a minute.

    Each stream sends ``rounds`` requests one after the other from ``workers`` processes. The result is kept in
    ``cache`` (else the user's cache folder), where later runs find it.
    """
    counts = sorted(whole(each, "streams", most=MOST_STREAMS) for each in wholes(streams, "streams"))
    whole(rounds, "rounds", most=1000)
    whole(workers, "workers", most=256)
    found = []
    with running_mock(PLAN) as server:
        for place, count in enumerate(counts):
            enough = max(rounds, -(-REQUESTS // count))
            found.append(run_trial(server, Trial(count, enough, WHOLE_S / len(counts), min(workers, count))))
            if progress is not None:
                progress(place + 1, len(counts))
    date = datetime.now(UTC).strftime("%Y-%m-%d")
    kept = keep(found, date, cache)
    return Answer(
        command="self-test",
        conditions=Conditions(
            hardware=f"this machine ({os.cpu_count()} cores, {platform.system()} {platform.machine()})",
            load=f"closed loop at {', '.join(f'{each:,}' for each in counts)} streams",
            lengths=f"{TOKENS} output tokens, the first after 200-220 ms, then one each 20 ms",
            precision="no model",
            engine="stand-in server with an exact schedule, on the same machine",
            version=__version__,
        ),
        result={
            "statement": statement(found),
            "rows": [each.to_json() for each in found],
            "date": date,
            "kept": None if kept is None else str(kept),
        },
        caveats=_caveats(found),
    )


def statement(found: Sequence[Accuracy]) -> str:
    """How far the client's times can be trusted here, in one sentence: the highest load with a p99 of at most 5 ms.

    Every smaller load that was tested must be as good.
    """
    good: list[Accuracy] = []
    for each in found:
        if each.failed or not each.ttft.p99_size_s <= TOLERABLE_S:
            break
        good.append(each)
    if not good:
        first = found[0]
        said = format_seconds(first.ttft.p99_size_s) if first.ttft.n else "unknown"
        return f"TTFT error is {said} (p99) already at {_streams(first)} here"
    worst = max(each.ttft.p99_size_s for each in good)
    reach = f"{_streams(good[-1])} and {good[-1].tokens_per_s:,.0f} tokens/s"
    return f"TTFT error under {_above(worst)} (p99) up to {reach} here"


def _streams(accuracy: Accuracy) -> str:
    return f"{accuracy.streams:,} stream{'s' if accuracy.streams != 1 else ''}"


def _above(seconds: float) -> str:
    """A round number above ``seconds`` [s], in ms.

    >>> _above(0.00031), _above(0.0042)
    ('0.4 ms', '5 ms')
    """
    step = 0.1 if seconds < 1e-3 else 1.0
    return f"{step * (seconds * 1e3 // step + 1):g} ms"


def _caveats(found: Sequence[Accuracy]) -> tuple[Caveat, ...]:
    caveats = []
    failed = [each for each in found if each.failed]
    if failed:
        where = ", ".join(f"{each.failed:,} of {each.requests:,} at {each.streams:,} streams" for each in failed)
        message = f"requests of the self-test did not complete: {where}"
        caveats.append(Caveat("self-test-incomplete", message, "fewer streams, or a machine with more to spare"))
    late = [each for each in found if each.server_late_p99_s > LATE_S]
    if late:
        first = late[0]
        message = (
            f"from {first.streams:,} streams this machine is too busy for client and stand-in server together: tokens "
            f"left {format_seconds(first.server_late_p99_s)} late (p99), which lowers the load, not the truth"
        )
        caveats.append(Caveat("self-test-saturated", message, "an idle machine with more cores"))
    if any(each.stamped != "kernel" for each in found):
        message = "arrivals were stamped by the program, not by the kernel: its own lateness is part of the error"
        caveats.append(Caveat("no-kernel-stamps", message, "Linux, without TLS"))
    return tuple(caveats)
