"""What is counted of a run beside its records: how requests ended, with an example of each, and who counted tokens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from servewise.measure.exchange import Exchange
from servewise.measure.load.mismatch import PromptMismatch
from servewise.measure.outcome import Outcome
from servewise.measure.recording import Recorder, error_text
from servewise.records.columns import RequestColumns

LONGEST = 300
MOST_CHECKED = 1_000  # texts of a run counted again: it happens in the loop that sends


class Tally:
    """Counts over the exchanges of a run, each added as it ends. ``records`` are its rows.

    ``examples`` has the first reason of each outcome that is no success. ``repeated`` counts the attempts that a 429
    ended and a later attempt repeated: no rows of their own. ``count_text`` is a tokenizer, by which the server's
    counts are checked where texts were kept, of the first thousand requests.
    """

    def __init__(self, count_text: Callable[[str], int] | None = None) -> None:
        self.records = Recorder()
        self.examples: dict[str, str] = {}
        self.repeated = 0
        self.short = 0
        self.long = 0  # by their count; one token more is the end's own
        self._count_text = count_text
        self._said = self._counted = self._compared = 0
        self._waiting: dict[int, Exchange] = {}  # a 429 ended them, and their repeats have not ended yet
        self._prompts = dict.fromkeys(("requests", "asked_tokens", "counted_tokens", "worst_tokens"), 0)

    @classmethod
    def again(cls, requests: RequestColumns, details: Mapping[str, Any]) -> Tally:
        """The tally of a run that was kept: its rows, and what ``details`` said of it."""
        found = cls()
        found.records = Recorder.again(requests, details)
        found.examples = dict(details["examples"])
        found.repeated, found.short, found.long = (
            details[name] for name in ("repeated_attempts", "short_answers", "long_answers")
        )
        checked = details.get("token_check") or {}
        found._compared, found._said, found._counted = (
            checked.get(name, 0) for name in ("requests", "usage_tokens", "tokenizer_tokens")
        )
        found._prompts = dict(details["prompts_compared"])
        return found

    def add(self, exchange: Exchange) -> int:
        """The next request that is over; the row in ``records.columns`` that it became."""
        self.records.add(exchange)
        self._waiting.pop(exchange.ask.serial, None)
        if exchange.outcome is not Outcome.COMPLETED:
            self.examples.setdefault(exchange.outcome.value, error_text(exchange)[:LONGEST])
        else:
            self._completed(exchange)
        return len(self.records.columns) - 1

    def add_repeated(self, exchange: Exchange) -> None:
        """An attempt that ended with a 429 and will be made again."""
        self.repeated += 1
        self._waiting[exchange.ask.serial] = exchange
        self.examples.setdefault("rate-limited", error_text(exchange)[:LONGEST])

    def unrepeated(self) -> list[Exchange]:
        """Those whose repeat never came to be, as the run was over before: their 429 is their end, to be added."""
        left, self._waiting = list(self._waiting.values()), {}
        self.repeated -= len(left)
        return left

    def _completed(self, exchange: Exchange) -> None:
        told = exchange.output_tokens
        if exchange.prompt_tokens is not None and exchange.ask.prompt_tokens is not None:
            self._compare(exchange.ask.prompt_tokens, exchange.prompt_tokens)
        self.short += told is not None and told < exchange.ask.output_tokens
        self.long += told is not None and told > exchange.ask.output_tokens + 1
        if self._compared < MOST_CHECKED and self._count_text and exchange.text is not None and told is not None:
            self._said += told
            self._counted += self._count_text(exchange.text)
            self._compared += 1

    def _compare(self, asked: int, counted: int) -> None:
        sums, off = self._prompts, counted - asked
        sums["requests"] += 1
        sums["asked_tokens"] += asked
        sums["counted_tokens"] += counted
        sums["worst_tokens"] = max(sums["worst_tokens"], off, key=abs)

    @property
    def completed(self) -> int:
        """Requests that completed."""
        return self.records.outcomes[Outcome.COMPLETED.value]

    @property
    def cancelled(self) -> int:
        """Requests that the end of the run cut off, or that this side lost: neither a success nor an error."""
        return self.records.outcomes[Outcome.CANCELLED.value] + self.records.outcomes[Outcome.LOST.value]

    @property
    def failed(self) -> int:
        """Requests that ended in any other way."""
        return len(self.records.columns) - self.completed - self.cancelled

    @property
    def kernel_stamped(self) -> bool:
        """Whether the arrivals of all completed requests have the kernel's own times."""
        stamped = dict(self._details("stamped"))
        return set(stamped) == {"kernel"}

    def outcomes(self) -> list[dict[str, Any]]:
        """Each outcome with its count, and the first reason of one that is no success; most frequent first."""
        return [
            {"outcome": name, "count": count} | ({"example": self.examples[name]} if name in self.examples else {})
            for name, count in self.records.outcomes.most_common()
        ]

    def details(self) -> dict[str, Any]:
        """For ``run.json``."""
        checked = {} if self.token_check() is None else {"token_check": self.token_check()}
        return (
            dict(self.records.details())
            | {
                "examples": dict(self.examples),
                "repeated_attempts": self.repeated,
                "short_answers": self.short,
                "long_answers": self.long,
                "prompts_compared": dict(self._prompts),
            }
            | checked
        )

    def counted_by(self) -> dict[str, int]:
        """By whom the output tokens of how many completed requests were counted."""
        return dict(self._details("counted_by"))

    def token_check(self) -> dict[str, Any] | None:
        """The server's token counts beside the tokenizer's; None where nothing could be compared."""
        if not self._compared:
            return None
        return {
            "requests": self._compared,
            "usage_tokens": self._said,
            "tokenizer_tokens": self._counted,
            "mismatch": self._counted / self._said - 1 if self._said else 0.0,
        }

    def prompt_mismatch(self) -> PromptMismatch | None:
        """Prompt tokens asked for and counted by the server; None where no request says both."""
        requests, worst = self._prompts["requests"], self._prompts["worst_tokens"]
        if not requests:
            return None
        return PromptMismatch(
            requests=requests,
            asked_mean_tokens=self._prompts["asked_tokens"] / requests,
            counted_mean_tokens=self._prompts["counted_tokens"] / requests,
            worst_tokens=worst,
        )

    def _details(self, name: str) -> Counter[str]:
        found = self.records.details()[name]
        assert isinstance(found, dict)
        return Counter({str(key): int(value) for key, value in found.items()})
