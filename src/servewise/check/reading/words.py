"""Words of a shell command with their places; reads on whatever the text is, and never fails."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass

from servewise.check.finding import Place

ENDS = frozenset("\n;|&`")
MOST_CHARACTERS = 20_000  # of one command
AFTER_BACKSLASH = re.compile(r"[ \t\r]*(?:[ \t]#[^\n]*)?(?:\n|$)")


@dataclass(frozen=True, slots=True)
class Word:
    """A word without its quotes, and where it begins."""

    text: str
    place: Place


class Lines:
    """Places of offsets in a text."""

    def __init__(self, text: str, first_line: int = 1, first_column: int = 1) -> None:
        self._starts = [0, *(index + 1 for index, each in enumerate(text) if each == "\n")]
        self._first_line = first_line
        self._first_column = first_column

    def place(self, offset: int) -> Place:
        """The place of the character at ``offset``."""
        line = bisect_right(self._starts, offset) - 1
        column = offset - self._starts[line] + (self._first_column if line == 0 else 1)
        return Place(self._first_line + line, column)


def words_from(text: str, start: int, lines: Lines, *, until: str = "") -> tuple[Word, ...]:
    """The words from ``start`` to the end of the command: an unescaped line end, ``;``, ``|``, ``&`` or ``until``.

    Quotes join, a backslash escapes, a line that ends in one goes on; ``<target-model>`` is a word, a redirection is
    none; a ``#`` at a word's start ends the line.
    """
    reader = _Reader(text, lines, until)
    return reader.read(start, min(len(text), start + MOST_CHARACTERS))


class _Reader:
    """One pass over a command: words so far, and the letters of the one that ``_began``, None: none has begun."""

    def __init__(self, text: str, lines: Lines, until: str) -> None:
        self._text = text
        self._lines = lines
        self._until = until
        self._words: list[Word] = []
        self._letters: list[str] = []
        self._began: int | None = None

    def read(self, at: int, end: int) -> tuple[Word, ...]:
        """The words from ``at`` to the command's end, at ``end`` at the latest."""
        text = self._text
        while at < end:
            each = text[at]
            if each == self._until and self._until:
                break
            if each == "\\":
                at = self._escaped(at)
            elif each in "'\"":
                at = self._quoted(at, end)
            elif each == "$" and text[at + 1 : at + 2] == "'":
                at += 1  # $'...' of bash
            elif each in ENDS or (each == "#" and self._began is None):
                break
            elif each.isspace():
                self._close()
                at += 1
            elif each in "<>" and not self._placeholder(at):
                self._close()
                break
            else:
                self._add(at, each)
                at += 1
        self._close()
        return tuple(self._words)

    def _escaped(self, at: int) -> int:
        """A backslash: before a line end the line goes on, else it keeps the next letter.

        Blanks and a comment between are forgiven: shells do not, documents write it.
        """
        comment = AFTER_BACKSLASH.match(self._text, at + 1)
        if comment is not None:
            self._close()
            return comment.end()
        self._add(at, self._text[at + 1 : at + 2])
        return at + 2

    def _quoted(self, at: int, end: int) -> int:
        """To the closing quote; to the end of the line where there is none."""
        mark = self._text[at]
        close = at + 1
        while close < end and self._text[close] != mark:
            close += 2 if mark == '"' and self._text[close] == "\\" else 1
        if close >= end:
            line_end = self._text.find("\n", at)
            close = line_end if 0 <= line_end < end else end
        inside = self._text[at + 1 : close]
        self._add(at, inside.replace('\\"', '"') if mark == '"' else inside)
        return close + (self._text[close : close + 1] == mark)

    def _placeholder(self, at: int) -> bool:
        """``<model>`` as documentation writes what the reader fills in."""
        if self._text[at] == ">":
            return bool(self._letters) and "<" in "".join(self._letters)
        close = self._text.find(">", at, at + 60)
        inside = self._text[at + 1 : close] if close > 0 else ""
        return bool(inside) and not any(each.isspace() or each in "<&|" for each in inside)

    def _add(self, at: int, letters: str) -> None:
        if self._began is None:
            self._began = at
        self._letters.append(letters)

    def _close(self) -> None:
        if self._began is not None:
            self._words.append(Word("".join(self._letters), self._lines.place(self._began)))
        self._letters, self._began = [], None
