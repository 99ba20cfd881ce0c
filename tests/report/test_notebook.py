"""Answers in a notebook: fragments and data frames."""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser

import pandas as pd  # type: ignore[import-untyped]
import polars as pl
import pytest
from tests.golden.outline import outline
from tests.report.documents import NAMES, answer

import servewise
from servewise.errors import InputError, UnknownName
from servewise.report.html import file_text


class _Names(HTMLParser):
    """Tags, and the names of elements outside of charts."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """A tag, its name where it is no chart's."""
        self.tags.add(tag)
        if tag in ("table", "section", "h1", "h2", "p", "div", "details"):
            self.ids += [value or "" for name, value in attrs if name == "id"]


@pytest.mark.parametrize("name", NAMES)
def test_a_fragment_stands_in_any_page(name: str) -> None:
    """No script, no frame, nothing loaded, no named element to collide, every tag closed; nothing of a whole page."""
    html = answer(name)._repr_html_()
    found = _Names()
    found.feed(html)

    assert outline(html).startswith("<div class='servewise'>")
    assert not found.tags & {"script", "link", "iframe", "html", "head", "body", "img"}
    assert found.ids == []
    assert set(re.findall(r"https?://[^\"' <]+", html)) <= {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
    }


def test_the_style_reaches_nothing_else() -> None:
    """Every rule of the fragment's style is about what lies in the fragment."""
    rules = [rule.split("{")[0] for rule in file_text("notebook.css").split("}") if "{" in rule]

    assert len(rules) > 20
    assert all(".servewise" in selector for rule in rules for selector in rule.split(","))


@pytest.mark.parametrize("name", NAMES)
def test_markdown_stands_in_for_html(name: str) -> None:
    """The same answer as Markdown, with its conditions."""
    assert "Conditions: " in answer(name)._repr_markdown_()


@pytest.mark.parametrize("name", NAMES)
def test_frames_of_both_libraries_agree(name: str) -> None:
    """Every table of every answer is a frame in pandas and in polars, of the same columns and length."""
    found = answer(name)
    for table, rows in found.tables.items():
        ours, theirs = found.to_pandas(table), found.to_polars(table)

        assert list(ours.columns) == theirs.columns
        assert len(ours) == theirs.height == len(rows)


def test_numbers_stay_numbers_in_si() -> None:
    """A latency is a float in seconds, the value that the document holds."""
    found = answer("simulate")
    row = found.result["rows"][0]
    ours, theirs = found.to_pandas(), found.to_polars()

    assert ours["ttft_s_p95"].dtype == "float64"
    assert theirs["ttft_s_p95"].dtype == pl.Float64
    assert ours["ttft_s_p95"][0] == theirs["ttft_s_p95"][0] == row["ttft_s"]["p95"]
    assert ours["ttft_s_p95_low"][0] == row["ttft_s"]["ci95_p95"][0]
    assert pd.api.types.is_integer_dtype(ours["completed"])


def test_a_frame_knows_its_conditions() -> None:
    """pandas keeps conditions and caveats beside the rows, as no figure leaves without them."""
    attributes = answer("plan").to_pandas().attrs

    assert attributes["conditions"] == answer("plan").conditions.to_json()
    assert attributes["schema"] == "servewise.plan/1"


def test_the_first_table_is_the_answers_own() -> None:
    """``rows`` is the ranking of a plan and the runs of a simulation; other tables are had by name."""
    assert answer("plan").rows[0]["max_rate_per_s"] == answer("plan").result["ranking"][0]["max_rate_per_s"]
    assert len(answer("simulate").rows) == len(answer("simulate").result["rows"])
    assert answer("size").to_pandas("sequences")["max_sequences"].tolist()


def test_an_unknown_table_names_the_known() -> None:
    """A mistyped table is answered with the nearest."""
    with pytest.raises(UnknownName, match="did you mean ranking"):
        answer("plan").to_pandas("rankin")


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_library_that_lacks_is_one_line(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it: its name and what to install."""
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(InputError, match=f"{library} is not installed; pip install {library}"):
        getattr(answer("plan"), f"to_{library}")()


def test_a_fresh_answer_shows_itself() -> None:
    """What a function gives, not only what a file held, has its fragment."""
    assert "does not fit" in servewise.size("llama-2-13b", "l4")._repr_html_()
