"""From exchanges to the records that every run is kept in, one row as each request ends.

Token times are arrivals: an event of k tokens gives k equal times, so that the tokens of one event stay known as such.
Where events do not say what they hold, the server's count is shared out over them (``tokens_by_event``). The tokens of
a failed request are kept with it, for the timeline; no latency is made of them (``metrics.latency``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import isnan, nan
from typing import Any

from servewise.measure.exchange import Arrival, Exchange
from servewise.measure.outcome import Outcome
from servewise.records.columns import CANCELLED, COMPLETED, FAILED, RequestColumns, TokenTimes

SUMS = ("retries", "fresh_connections", "cached_known", "events")


class Recorder:
    """The rows of one measured run as they grow, and counts of what the rows do not hold.

    ``columns`` are the rows, in order of ending; ``outcomes`` how many requests ended how. A row's error reads
    ``outcome: reason``. Prompt tokens are the server's count, else what the prompt was made to be, else 0.
    """

    def __init__(self) -> None:
        self.columns = RequestColumns(token_times=TokenTimes())
        self.outcomes: Counter[str] = Counter()
        self._told: dict[str, Counter[str]] = {name: Counter() for name in ("counted_by", "stamped", "finish_reason")}
        self._sums: Counter[str] = Counter()

    @classmethod
    def again(cls, columns: RequestColumns, details: Mapping[str, Any]) -> Recorder:
        """The recorder of a run that was kept: its rows, and its ``details``."""
        found = cls()
        found.columns = columns
        found.outcomes = Counter(details["outcomes"])
        found._told = {name: Counter(details[name]) for name in found._told}
        found._sums = Counter({name: details[name] for name in SUMS})
        return found

    def add(self, exchange: Exchange) -> None:
        """The next request that ended, however it ended."""
        rows = self.columns
        if exchange.outcome is not Outcome.COMPLETED:
            rows.errors[len(rows)] = error_text(exchange)
        rows.id.append(exchange.ask.serial)
        rows.scheduled_s.append(exchange.scheduled_s)
        rows.sent_s.append(exchange.sent_s)
        rows.admitted_s.append(nan)
        rows.first_token_s.append(exchange.first_token_s)
        rows.end_s.append(exchange.end_s)
        known = exchange.prompt_tokens if exchange.prompt_tokens is not None else exchange.ask.prompt_tokens
        rows.prompt_tokens.append(known or 0)
        rows.cached_tokens.append(exchange.cached_tokens or 0)
        rows.output_tokens.append(output_tokens(exchange))
        rows.preemptions.append(0)
        rows.status.append(status_of(exchange.outcome))
        assert rows.token_times is not None
        rows.token_times.append(token_times(exchange))
        self._count(exchange)

    def details(self) -> dict[str, object]:
        """Counts for ``run.json``: how requests ended, who counted their tokens, who stamped them, how they were sent.

        ``cached_known`` is the number of completed requests whose server said how much of the prompt it had cached.
        """
        counts = {"outcomes": self.outcomes} | self._told
        return {name: dict(sorted(count.items())) for name, count in counts.items()} | {
            name: self._sums[name] for name in SUMS
        }

    def _count(self, exchange: Exchange) -> None:
        self.outcomes[exchange.outcome.value] += 1
        self._sums["retries"] += exchange.retries
        self._sums["fresh_connections"] += exchange.fresh_connection
        if exchange.outcome is Outcome.COMPLETED:
            self._sums["cached_known"] += exchange.cached_tokens is not None
            self._sums["events"] += len(exchange.arrivals)
            self._told["counted_by"][exchange.counted_by] += 1
            self._told["stamped"][exchange.stamped] += 1
            self._told["finish_reason"][exchange.finish_reason or "none"] += 1


def columns(exchanges: Iterable[Exchange]) -> RequestColumns:
    """The records of ``exchanges``, in their order."""
    recorder = Recorder()
    for exchange in exchanges:
        recorder.add(exchange)
    return recorder.columns


def status_of(outcome: Outcome) -> int:
    """A row's status: completed; cancelled, also where this side lost it; and failed for every other way to end."""
    own = {Outcome.COMPLETED: COMPLETED, Outcome.CANCELLED: CANCELLED, Outcome.LOST: CANCELLED}
    return own.get(outcome, FAILED)


def error_text(exchange: Exchange) -> str:
    """``outcome: reason`` in one line, or the outcome alone."""
    reason = " ".join(exchange.reason.split())
    return f"{exchange.outcome.value}: {reason}" if reason else exchange.outcome.value


def output_tokens(exchange: Exchange) -> int:
    """The server's count; where it gave none, what the events say (an event that does not say counts as one)."""
    if exchange.output_tokens is not None:
        return exchange.output_tokens
    return sum(1 if each.tokens is None else each.tokens for each in exchange.arrivals)


def token_times(exchange: Exchange) -> list[float]:
    """When each token came [s], in order."""
    counts = tokens_by_event(exchange.arrivals, exchange.output_tokens)
    return [
        each.time_s
        for each, count in zip(exchange.arrivals, counts, strict=True)
        if not isnan(each.time_s)
        for _ in range(count)
    ]


def tokens_by_event(arrivals: Sequence[Arrival], total: int | None) -> list[int]:
    """How many tokens each event held.

    What an event says is taken as it is. The rest of ``total`` (the server's count) is shared out over the events that
    do not say, as evenly as possible, the first ones getting what is left over: of 64 tokens in 63 events, which is an
    end-of-text token that no event shows as often as not, the gaps then stay 62 for 62 tokens. Fewer tokens than
    events are spread from the first event to the last. Without a count each such event is one token.
    """
    silent = [place for place, each in enumerate(arrivals) if each.tokens is None]
    counts = [each.tokens or 0 for each in arrivals]
    shares = [1] * len(silent) if total is None else shared_out(max(total - sum(counts), 0), len(silent))
    for place, share in zip(silent, shares, strict=True):
        counts[place] = share
    return counts


def shared_out(tokens: int, events: int) -> list[int]:
    """``tokens`` over ``events``, as evenly as possible.

    >>> shared_out(8, 3), shared_out(2, 3), shared_out(0, 2)
    ([3, 3, 2], [1, 0, 1], [0, 0])
    """
    if events == 0:
        return []
    if tokens >= events or tokens == 0:
        each, left = divmod(tokens, events)
        return [each + (place < left) for place in range(events)]
    shares = [0] * events
    for token in range(tokens):
        shares[token * (events - 1) // max(tokens - 1, 1)] = 1
    return shares
