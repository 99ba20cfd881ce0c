"""From documents to events, from events to chunks, from chunks to writes."""

from __future__ import annotations

from collections.abc import Iterator

from servewise.measure.mock.script import Write
from servewise.measure.mock.shape import Shape

SPLITS = (1, 37, 5, 211, 2, 89)  # bytes in each piece, in turn
PIECE_S = 0.0005  # between the pieces of an event


def around(shape: Shape) -> tuple[bytes, bytes]:
    """What stands before and after an event's data."""
    return b"data: " if shape.space else b"data:", 2 * shape.line_end.encode()


def event_of(document: bytes, shape: Shape) -> bytes:
    """The event that carries ``document``."""
    begin, end = around(shape)
    return begin + document + end


def comments(place: int, shape: Shape) -> bytes:
    """Lines that bring nothing: a comment, an event of another field, an empty one."""
    if not shape.comments:
        return b""
    end = shape.line_end.encode()
    return (b": keep-alive" + 2 * end, b"id: 7" + end + b"retry: 3000" + 2 * end, end)[place % 3]


def laid(events: list[Write], shape: Shape) -> list[Write]:
    """The events as the writes (and chunks) in which they leave."""
    if shape.writes == "joined":
        pairs = zip(events[::2], [*events[1::2], None], strict=False)
        return [
            one if two is None else Write(two.after_s, one.data + two.data, one.tokens + two.tokens)
            for one, two in pairs
        ]
    return [piece for event in events for piece in _pieces(event)] if shape.writes == "split" else events


def _pieces(event: Write) -> Iterator[Write]:
    """The event cut into odd pieces; the last one, on time, completes it."""
    data, cuts, sizes = event.data, [], iter(SPLITS)
    for size in sizes:
        if size >= len(data):
            break
        cuts.append(data[:size])
        data = data[size:]
    for place, piece in enumerate(cuts):
        yield Write(max(0.0, event.after_s - (len(cuts) - place) * PIECE_S), piece)
    yield event._replace(data=data)


def frame(data: bytes, shape: Shape) -> bytes:
    """``data`` as one chunk, where the body is in chunks."""
    return b"%x\r\n%b\r\n" % (len(data), data) if shape.framing == "chunked" else data


def framed_body(events: list[Write], shape: Shape) -> tuple[Write, ...]:
    """The writes as HTTP; the last one ends the body."""
    framed = [Write(each.after_s, frame(each.data, shape), each.tokens) for each in events]
    if shape.framing == "chunked":
        last = framed[-1] if framed else Write(0.0, b"")
        framed[-1:] = [last._replace(data=last.data + b"0\r\n\r\n")]
    if shape.writes == "split":
        return tuple(part for each in framed for part in _halves(each))
    return tuple(framed)


def _halves(write: Write) -> Iterator[Write]:
    """A write in two: cut inside the chunk's head, or inside its data."""
    cut = 1 + len(write.data) % 7
    if cut < len(write.data):
        yield Write(max(0.0, write.after_s - PIECE_S / 2), write.data[:cut])
        yield write._replace(data=write.data[cut:])
    else:
        yield write
