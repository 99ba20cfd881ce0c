"""Exchanges made by hand for the tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from servewise.measure.ask import Ask
from servewise.measure.exchange import Arrival, Exchange
from servewise.measure.outcome import Outcome


def exchange(
    arrivals: Sequence[tuple[float, int | None]] = (),
    *,
    serial: int = 0,
    scheduled: float = 0.0,
    sent: float | None = None,
    outcome: Outcome = Outcome.COMPLETED,
    **more: Any,
) -> Exchange:
    """An exchange whose output came as ``arrivals`` of (time, tokens), and ended with the last."""
    end = arrivals[-1][0] if arrivals else scheduled
    return Exchange(
        ask=Ask(serial=serial, body=b"{}", output_tokens=64, prompt_tokens=10),
        outcome=outcome,
        scheduled_s=scheduled,
        arrivals=tuple(Arrival(time, tokens) for time, tokens in arrivals),
        **({"sent_s": scheduled if sent is None else sent, "end_s": end} | more),
    )
