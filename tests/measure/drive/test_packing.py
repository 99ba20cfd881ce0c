"""Exchanges and messages on their way between processes."""

from __future__ import annotations

from dataclasses import fields

from hypothesis import given, settings
from hypothesis import strategies as st

from servewise.measure.ask import Ask
from servewise.measure.drive.frames import Frames, framed
from servewise.measure.drive.packing import packed, unpacked
from servewise.measure.exchange import Arrival, Exchange
from servewise.measure.outcome import Outcome

ARRIVALS = st.lists(
    st.builds(Arrival, st.floats(0, 1e6), st.none() | st.integers(0, 10**9), st.booleans()), max_size=20
)


@given(ARRIVALS, st.sampled_from(Outcome), st.text())
@settings(max_examples=50, deadline=None)
def test_an_exchange_is_the_same_on_the_other_side(arrivals: list[Arrival], outcome: Outcome, text: str) -> None:
    """Packing and unpacking change nothing."""
    ask = Ask(serial=1, body=b"{}", output_tokens=3)
    exchange = Exchange(
        ask=ask,
        outcome=outcome,
        scheduled_s=0.5,
        sent_s=0.6,
        head_s=1.0,
        end_s=2.0,
        arrivals=tuple(arrivals),
        text=text,
    )
    (again,) = Frames().feed(framed(packed(exchange)))
    got = unpacked(again)
    assert [getattr(got, each.name) for each in fields(Exchange)] == [
        getattr(exchange, each.name) for each in fields(Exchange)
    ]


@given(st.lists(st.binary(max_size=50), max_size=6), st.integers(1, 9))
@settings(max_examples=50, deadline=None)
def test_messages_may_be_cut_anywhere(messages: list[bytes], size: int) -> None:
    """Pieces of any size give the messages in their order."""
    data, frames, got = b"".join(map(framed, messages)), Frames(), []
    for i in range(0, len(data), size):
        got += frames.feed(data[i : i + size])
    assert got == messages
