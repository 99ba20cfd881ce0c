"""What each replica of a fleet did, from its records in memory or as they pass."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import fsum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from servewise.metrics.latency import ints
from servewise.metrics.streamed.exact import ExactSum
from servewise.metrics.summary import RunSummary
from servewise.records.columns import COMPLETED, RequestColumns, StepColumns
from servewise.records.selection import lanes_of, steps_by_replica
from servewise.simulate.fleet.fleet import FleetRun


class Share(NamedTuple):
    """What one replica did: requests that ended there and their tokens, its steps, how long it is paid for.

    ``prompt_tokens``, ``cached_tokens`` and ``output_tokens`` are of its completed requests; ``computed_tokens`` are
    the prompt tokens of its steps, ``active_steps`` sequence-steps that made a token, ``slot_steps`` slots x steps.
    Of a server with several lanes each works beside the others, on its even share of the slots: theirs are means.
    """

    number: int
    slots: int
    requests: int
    prompt_tokens: int
    cached_tokens: int
    output_tokens: int
    computed_tokens: int
    active_steps: int
    slot_steps: int
    busy_s: float
    paid_s: float


@dataclass(slots=True)
class _Done:
    """The sums of one replica."""

    requests: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    computed_tokens: int = 0
    active_steps: int = 0
    steps: int = 0
    lanes: int = 1
    busy_s: ExactSum = field(default_factory=ExactSum)


class Shares:
    """A sink that sees a fleet's records pass; ``shares`` are what they come to."""

    def __init__(self) -> None:
        self._done: defaultdict[int, _Done] = defaultdict(_Done)

    def requests(self, requests: RequestColumns) -> None:
        """The next requests that ended."""
        where = np.where(ints(requests.status) == COMPLETED, ints(requests.replica), -1)
        for number in np.unique(where[where >= 0]).tolist():
            here, done = where == number, self._done[number]
            done.requests += int(here.sum())
            done.prompt_tokens += int(ints(requests.prompt_tokens)[here].sum())
            done.cached_tokens += int(ints(requests.cached_tokens)[here].sum())
            done.output_tokens += int(ints(requests.output_tokens)[here].sum())

    def steps(self, steps: StepColumns) -> None:
        """The next steps."""
        for _, part in steps_by_replica(steps):
            done, many = self._done[int(part.replica[0])], ints(part.steps)
            done.computed_tokens += int(ints(part.prefill_tokens).sum())
            done.active_steps += int((ints(part.active) * many).sum())
            done.steps += int(many.sum())
            done.lanes = max(done.lanes, lanes_of(part))
            done.busy_s.add(np.frombuffer(part.seconds))

    def shares(self, fleet: FleetRun) -> tuple[Share, ...]:
        """What each replica did, by number."""
        return tuple(
            self._share(number, slots, paid_s)
            for number, (slots, paid_s) in enumerate(zip(fleet.slots, fleet.paid_since(0.0), strict=True))
        )

    def _share(self, number: int, slots: int, paid_s: float) -> Share:
        done = self._done[number]
        return Share(
            number,
            slots,
            done.requests,
            done.prompt_tokens,
            done.cached_tokens,
            done.output_tokens,
            done.computed_tokens,
            done.active_steps,
            slots * done.steps // done.lanes,
            done.busy_s.value / done.lanes,
            paid_s,
        )


def used(summary: RunSummary, shares: Sequence[Share]) -> RunSummary:
    """Utilisation over each replica's own slots, where these differ."""
    slots = {each.slots for each in shares}
    if len(slots) == 1:
        return summary
    held = sum(each.slot_steps for each in shares)
    used = sum(each.active_steps for each in shares) / held if held else float("nan")
    ci95 = {name: pair for name, pair in summary.ci95.items() if name != "utilisation"}
    return replace(summary, utilisation=used, ci95=ci95)


def shares_of(requests: RequestColumns, steps: StepColumns, fleet: FleetRun, since_s: float = 0.0) -> tuple[Share, ...]:
    """What each replica did, by number, and for how long it is paid from ``since_s`` on."""
    paid_s = fleet.paid_since(since_s)
    done = ints(requests.status) == COMPLETED
    where = ints(requests.replica)
    parts = {int(part.replica[0]): part for _, part in steps_by_replica(steps) if len(part)}
    return tuple(
        _share(requests, where, done, parts.get(number), number, slots, paid_s[number])
        for number, slots in enumerate(fleet.slots)
    )


def _share(
    requests: RequestColumns,
    where: NDArray[np.int64],
    done: NDArray[np.bool_],
    steps: StepColumns | None,
    number: int,
    slots: int,
    paid_s: float,
) -> Share:
    here = (where == number) & done
    prompt, cached = (int(ints(column)[here].sum()) for column in (requests.prompt_tokens, requests.cached_tokens))
    tokens = int(ints(requests.output_tokens)[here].sum())
    if steps is None:
        return Share(number, slots, int(here.sum()), prompt, cached, tokens, 0, 0, 0, 0.0, paid_s)
    many = ints(steps.steps)
    return Share(
        number,
        slots,
        int(here.sum()),
        prompt,
        cached,
        tokens,
        int(ints(steps.prefill_tokens).sum()),
        int((ints(steps.active) * many).sum()),
        int(slots * many.sum()) // lanes_of(steps),
        fsum(steps.seconds) / lanes_of(steps),
        paid_s,
    )
