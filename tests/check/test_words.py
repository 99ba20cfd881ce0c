"""Words of a command are those that a shell makes, with the places where they stand."""

from __future__ import annotations

import shlex
import string

from hypothesis import given
from hypothesis import strategies as st

from servewise.check.finding import Place
from servewise.check.reading.words import Lines, words_from

PLAIN = st.text(string.ascii_letters + string.digits + "-_./= \"'{}:,$\\", min_size=1, max_size=20)


def words(text: str) -> list[str]:
    """The words of the first command."""
    return [word.text for word in words_from(text, 0, Lines(text))]


@given(st.lists(PLAIN, min_size=1, max_size=8))
def test_quoted_words_come_back(given_words: list[str]) -> None:
    """What Python's shlex quotes for a shell is read as the same words."""
    assert words(shlex.join(given_words)) == given_words


@given(st.lists(st.text(string.ascii_letters + "-=.", min_size=1, max_size=9), min_size=1, max_size=9))
def test_every_word_stands_at_its_place(given_words: list[str]) -> None:
    """Each word is found in the text at the line and column that it is said to stand at."""
    text = " \\\n   ".join(given_words)
    lines = text.split("\n")
    for word in words_from(text, 0, Lines(text)):
        assert lines[word.place.line - 1][word.place.column - 1 :].startswith(word.text)


def test_a_command_ends_where_a_shell_ends_it() -> None:
    """A line's end, a pipe, a semicolon, an ampersand, a redirection and a comment end the words."""
    for end in ("\nnext", " | tee log", "; next", " && next", " > file", " # next"):
        assert words("serve --port 1" + end) == ["serve", "--port", "1"]


def test_a_line_goes_on_after_a_backslash() -> None:
    """Also with blanks behind it, and with the comment behind it that documents write."""
    assert words("a \\\n b") == ["a", "b"]
    assert words("a \\   \n b") == ["a", "b"]
    assert words("a \\   # why\n b") == ["a", "b"]


def test_a_placeholder_is_a_word() -> None:
    """``<target-model>`` is no redirection."""
    assert words("<target-model> --port 1") == ["<target-model>", "--port", "1"]


def test_a_quote_after_a_dollar_is_a_quote() -> None:
    """bash's $'...' as vLLM's documentation writes JSON."""
    assert words("a $'b c' $D") == ["a", "b c", "$D"]


def test_an_open_quote_ends_with_its_line() -> None:
    """A stray apostrophe does not swallow the rest of a document."""
    assert words("a 'b\nc") == ["a", "b"]


def test_places_count_from_where_a_text_begins() -> None:
    """A stretch of a file has the file's lines."""
    text = "a\nb"
    assert words_from(text, 2, Lines(text, 10, 5))[0].place == Place(11, 1)
