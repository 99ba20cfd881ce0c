"""Text that grows token by token: characters whole, stop strings found wherever they lie."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

pytest.importorskip("torch")

from hypothesis import given, settings
from hypothesis import strategies as st

from servewise.engine.running.text import Detokenizer, OutputText, StopScanner


def bytes_decoded(tokens: Sequence[int]) -> str:
    """A byte-level tokenizer's decoding: one token, one byte."""
    return bytes(tokens).decode("utf-8", "replace")


def words_decoded(tokens: Sequence[int]) -> str:
    """A SentencePiece tokenizer's decoding: words joined by spaces, the leading one dropped."""
    return "".join(f" w{token}" for token in tokens)[1:]


def pieces(detokenizer: Detokenizer, tokens: Sequence[int]) -> list[str]:
    """The texts of all tokens and of the end."""
    return [*(detokenizer.push(each) for each in tokens), detokenizer.flush()]


def test_a_character_of_four_bytes_comes_with_its_last() -> None:
    """The emoji's first three bytes bring nothing."""
    assert pieces(Detokenizer(bytes_decoded), "a🙂b".encode()) == ["a", "", "", "", "🙂", "b", ""]


def test_an_unfinished_character_is_told_at_the_end() -> None:
    """Half an emoji becomes the replacement character, once."""
    assert pieces(Detokenizer(bytes_decoded), "a🙂".encode()[:3]) == ["a", "", "", "\ufffd"]


def test_a_leading_space_is_kept_after_the_prompt() -> None:
    """Where a decoder drops the first space, the prompt's last tokens bring it back."""
    assert pieces(Detokenizer(words_decoded, [1, 2]), [3, 4]) == [" w3", " w4", ""]


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=40) | st.text(max_size=20).map(str.encode))
def test_the_pieces_are_the_whole(data: bytes) -> None:
    """Whatever the bytes, valid or not: all pieces together are the decoding of all tokens."""
    assert "".join(pieces(Detokenizer(bytes_decoded), data)) == bytes_decoded(data)


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=20))
def test_no_piece_of_valid_text_is_broken(text: str) -> None:
    """Valid text never shows a replacement character that is not its own."""
    told = pieces(Detokenizer(bytes_decoded), text.encode())

    assert sum(each.count("\ufffd") for each in told) == text.count("\ufffd")


def test_a_stop_string_across_three_tokens() -> None:
    """``END`` in ``E``, ``N``, ``D``: what may be its beginning waits, the text before it is let through."""
    scanner = StopScanner(["END"])

    assert [scanner.push(each) for each in ("the E", "N", "Dless")] == ["the ", "", ""]
    assert scanner.stop == "END"


def test_a_beginning_that_goes_nowhere_is_let_through() -> None:
    """``ENx`` is no stop: all of it comes, late."""
    scanner = StopScanner(["END"])

    assert [scanner.push(each) for each in ("E", "N", "x", "E")] == ["", "", "ENx", ""]
    assert scanner.flush() == "E"
    assert scanner.stop is None


def test_the_earliest_stop_counts() -> None:
    """Of two stops in one piece the one that begins first ends the text."""
    scanner = StopScanner(["late", "soon"])

    assert scanner.push("very soon or late") == "very "
    assert scanner.stop == "soon"


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.text("ab", max_size=4), max_size=12),
    st.lists(st.text("ab", min_size=1, max_size=4), min_size=1, max_size=3),
)
def test_streamed_text_ends_where_the_whole_text_does(parts: list[str], stops: list[str]) -> None:
    """However text is cut into pieces, what is let through is the text up to the first stop that is complete."""
    scanner, told = StopScanner(stops), ""
    for part in parts:
        if scanner.stop is None:
            told += scanner.push(part)
    whole, seen = "".join(parts), ""
    for part in parts:  # pieces end at tokens: the first piece with which a stop is complete decides
        seen += part
        starts = [seen.find(stop) for stop in stops if stop in seen]
        if starts:
            assert told == seen[: min(starts)]
            return

    assert told + scanner.flush() == whole


def test_output_text_is_detokenizer_and_scanner_in_a_row() -> None:
    """A stop of two-byte characters over byte tokens: the text stops before it."""
    text = OutputText(bytes_decoded, [], ("éé",))
    told = [text.push(each) for each in "aéxéé".encode()]

    assert told == ["a", "", "", "éx", "", "", "", ""]
    assert (text.text, text.stop, text.flush()) == ("aéx", "éé", "")


def test_flush_tells_what_was_held() -> None:
    """At the end the beginning of a stop, and half a character, are text."""
    text = OutputText(bytes_decoded, [], ("éé",))
    for each in "aé".encode() + b"\xc3":
        text.push(each)

    assert text.text == "a"
    assert text.flush() == "é\ufffd"
    assert text.text == "aé\ufffd"
