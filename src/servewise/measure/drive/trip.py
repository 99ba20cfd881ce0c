"""One ask under way: what was read of its answer so far, parsed when there is time."""

from __future__ import annotations

from collections import deque
from math import isnan, nan

from servewise.measure.dialect.answer import Answer, Ending
from servewise.measure.drive.believed import believed
from servewise.measure.exchange import Exchange
from servewise.measure.outcome import Outcome
from servewise.measure.schedule import Due
from servewise.measure.wire.stamping import Ancillary, stamp_ns

LONG_READS = 64  # so many reads wait before they are parsed in slices, so that an answer's end is not a long stop
_ENDS = b"\r\n\r\n"

Read = tuple[Ancillary, int, float, bytes]  # control messages, the wall clock's zero [ns], when it was read [s], data


class Trip:
    """An ask, its connection's facts, its reads; times in seconds from the run's start.

    The loop appends to ``reads`` and asks ``wants_parsing``: a look at the last bytes, no parsing. ``parse`` turns
    reads into the answer, and the kernel's stamps into times.
    """

    __slots__ = (
        "answer",
        "began_s",
        "due",
        "ending",
        "fresh",
        "heard_s",
        "lags",
        "lazy",
        "merged_s",
        "parsed_s",
        "queued",
        "reads",
        "resent",
        "sent_s",
        "stamped",
        "tried",
        "until_close",
    )

    def __init__(self, due: Due, began_s: float, *, keep_text: bool, keep_logprobs: bool) -> None:
        self.due = due
        asked = due.ask.output_tokens
        self.answer = Answer(keep_text=keep_text, keep_logprobs=keep_logprobs, asked_tokens=asked)
        self.began_s = began_s
        self.heard_s = began_s  # when anything last went well
        self.sent_s = nan
        self.reads: deque[Read] = deque()
        self.ending: Ending | None = None
        self.fresh = True
        self.resent = False
        self.tried = 0  # connections that failed before any byte of the answer
        self.stamped = True
        self.lazy = False  # the head is known, and says that the end can be told by a look
        self.until_close = False
        self.queued = False
        self.lags: list[float] = []
        self.merged_s: list[float] = []
        self.parsed_s = nan  # when the last parsed read was made

    def wants_parsing(self, data: bytes) -> bool:
        """Whether the answer may be over with ``data``, or too much of it waits."""
        if not self.lazy or len(self.reads) >= LONG_READS:
            return True
        if self.until_close:
            return b"[DONE]" in data
        return data.endswith(_ENDS) or len(data) < len(_ENDS) + 1

    def parse(self, most: int) -> bool:
        """Read up to ``most`` reads into the answer; whether it is over."""
        answer, reads = self.answer, self.reads
        while reads and most > 0 and not answer.over:
            most -= 1
            ancillary, zero_ns, read_s, data = reads.popleft()
            stamp, time_s = stamp_ns(ancillary), read_s
            if stamp is None:
                self.stamped = False
            else:
                time_s = min((stamp - zero_ns) * 1e-9, read_s)
                self.lags.append(read_s - time_s)
            before = answer.reading.outputs
            answer.feed(data, time_s)
            if answer.reading.outputs > before + 1:
                self._merged(answer.reading.outputs - before - 1, time_s)
            self.parsed_s = read_s
        self.lazy = answer.http.chunked or answer.http.until_close
        self.until_close = answer.http.until_close
        return answer.over or (not reads and self.ending is not None)

    def _merged(self, events: int, time_s: float) -> None:
        """Output events that share the time of a later one: they came after the read before, or after the sending."""
        since_s = self.sent_s if isnan(self.parsed_s) else self.parsed_s
        self.merged_s += [max(0.0, time_s - since_s)] * events

    def exchange(self, outcome: Outcome | None, reason: str) -> Exchange:
        """What became of it; ``outcome`` None: as the answer itself says, and so where all of it had come by then."""
        self.parse(len(self.reads))
        answer, reading, http = self.answer, self.answer.reading, self.answer.http
        told, told_reason = answer.verdict(self.ending or Ending.WHOLE)
        if outcome is None or told is Outcome.COMPLETED:
            outcome, reason = told, told_reason
        usage = reading.usage
        arrivals, output = believed(reading.arrivals(), usage.output, self.due.ask.output_tokens)
        counted = [each.tokens or 0 for each in arrivals]
        known = all(each.tokens is not None for each in arrivals)
        found = Exchange(
            ask=self.due.ask,
            outcome=outcome,
            reason=reason,
            scheduled_s=self.due.scheduled_s,
            sent_s=self.sent_s,
            head_s=answer.head_s,
            end_s=answer.last_s,
            arrivals=arrivals,
            http_status=http.status,
            finish_reason=reading.finish_reason,
            prompt_tokens=usage.prompt,
            cached_tokens=usage.cached,
            output_tokens=output if output is not None else sum(counted) if known else len(arrivals),
            counted_by="usage" if output is not None else "events",
            retry_after_s=answer.retry_after_s(),
            retries=self.due.retries,
            fresh_connection=self.fresh,
            stamped="kernel" if self.stamped and self.lags else "user",
            events=reading.events,
            text="".join(reading.texts) if reading.keep_text else None,
            logprobs=tuple(reading.logprobs),
        )
        http.release()
        return found
