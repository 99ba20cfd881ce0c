"""A report's HTML as text that stays the same over versions of matplotlib: tags, words, and the charts' own words."""

from __future__ import annotations

from html.parser import HTMLParser

VOID = {"meta", "link", "br"}
KEPT = ("class", "id", "href", "open", "role", "aria-label", "aria-labelledby")
CELLS = {"td", "th"}


class Outline(HTMLParser):
    """Each tag on its line, indented by depth; a table's row on one; of an SVG only its words; no style sheet."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.stack: list[str] = []
        self.cells: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """A tag opens."""
        if tag in CELLS:
            self.cells.append("")
        elif "svg" not in self.stack and tag != "tr":
            shown = "" if tag == "svg" else "".join(f" {name}={value!r}" for name, value in attrs if name in KEPT)
            self.lines.append(f"{self._indent()}<{tag}{shown}>")
        if tag not in VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """A tag of an SVG that holds nothing."""

    def handle_endtag(self, tag: str) -> None:
        """A tag closes; every tag closes in order."""
        if tag in VOID:
            return
        last = self.stack.pop() if self.stack else None
        assert last == tag, f"</{tag}> closes {last}"
        if tag == "tr":
            self.lines.append(f"{self._indent()}| {' | '.join(self.cells)} |")
            self.cells = []

    def handle_data(self, data: str) -> None:
        """Words."""
        words = " ".join(data.split())
        if self.cells:
            self.cells[-1] += words
        elif words and "style" not in self.stack:
            self.lines.append(self._indent() + words)

    def _indent(self) -> str:
        return "  " * len(self.stack)


def outline(html: str) -> str:
    """The outline of ``html``; fails where a tag is not closed."""
    parser = Outline()
    parser.feed(html)
    parser.close()
    assert not parser.stack, f"not closed: {parser.stack}"
    return "\n".join(parser.lines) + "\n"
