"""The HTML report: whole in itself, true to its conditions, safe with hostile words, written whole or not at all."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.golden.outline import outline
from tests.report.documents import NAMES, answer, document
from tests.report.test_charts import contrast

from servewise.answer import Answer
from servewise.errors import InputError
from servewise.report import parse_answer, render_html, render_markdown, write_html
from servewise.report.captions import caption
from servewise.report.reading import text

HOSTILE = "\"'><script>alert(1)</script><img src=x onerror=alert(1)>&amp;{{7*7}}"


def everything() -> Answer:
    """One answer made of all."""
    sections = {name: document(name) for name in NAMES}
    return replace(answer("plan"), command="demo", result={"sections": sections}, caveats=())


def test_the_page_needs_no_network_and_no_script() -> None:
    """No address but the SVG name spaces, nothing loaded, no script, no handler."""
    page = render_html(everything(), title="All")
    addresses = set(re.findall(r"https?://[^\"'\s<]+", page))

    assert "default-src 'none'" in page, "a browser is told to load nothing, whatever the page says"
    assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert not re.search(r"<(script|iframe|object|embed|img|base|form)\b|\son\w+=|@import|url\((?!#)", page)


def test_ids_are_unique_and_links_arrive() -> None:
    """Several charts and tables in one page share no id; each link has its target; each clip path exists."""
    page = render_html(everything(), title="All")
    ids = re.findall(r'\sid="([^"]+)"', page)

    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]+)"', page)) <= set(ids)
    assert set(re.findall(r"url\(#([^)]+)\)", page)) <= set(ids)


@pytest.mark.parametrize("name", NAMES)
def test_every_figure_and_table_carries_its_conditions(name: str) -> None:
    """The caption of each chart and of each table holds the answer's conditions."""
    said = caption(answer(name).conditions)
    words = " ".join(outline(render_html(answer(name), title="x")).split())

    assert words.count(" ".join(said.split())) >= words.count("<figure") + words.count("<table id")


def test_the_first_screen_answers() -> None:
    """A report that holds a plan opens with its recommendation, what binds, three numbers and every caveat."""
    page = outline(render_html(everything(), title="All"))
    first = page[: page.index("<nav")]
    plan = answer("plan").result["recommendation"]

    assert plan["text"] in first
    assert plan["binds"] in first
    assert first.count("<dd>") == 3
    for name in NAMES:
        for caveat in answer(name).caveats:
            assert caveat.message.split(" ", 1)[1].rstrip(".") in first


def hostile(value: object) -> object:
    """``value`` with every text in it hostile; keys and the words that steer are left."""
    if isinstance(value, dict):
        kept = ("metric", "percentile", "slo")
        return {key: item if key in kept else hostile(item) for key, item in value.items()}
    if isinstance(value, list):
        return [hostile(item) for item in value]
    return HOSTILE if isinstance(value, str) else value


@pytest.mark.parametrize("name", NAMES)
def test_hostile_words_are_shown_as_words(name: str) -> None:
    """Markup in any text of a document reaches neither page nor charts as markup, and is not lost."""
    evil = document(name)
    evil = {**evil, "result": hostile(evil["result"]), "conditions": hostile_conditions(evil["conditions"])}
    evil["caveats"] = [{"code": "x", "message": HOSTILE, "cure": HOSTILE}]
    found = parse_answer(json.dumps(evil))
    page = render_html(found, title=HOSTILE, command=HOSTILE)

    assert not re.search(r"<(script|img)", page)
    assert "49" not in re.findall(r"<title>(.*?)</title>", page)[0]
    assert text(HOSTILE) in outline(page)
    assert "<script" not in render_markdown(found)


def hostile_conditions(conditions: dict[str, object]) -> dict[str, object]:
    """Conditions whose texts are all hostile."""
    return {key: HOSTILE if isinstance(value, str) else value for key, value in conditions.items()}


def test_dark_and_light_have_contrast() -> None:
    """Every colour of words, in both schemes, has WCAG AA contrast on the paper it stands on."""
    page = render_html(answer("size"), title="x")
    schemes = re.findall(r":root \{(.*?)\}", page, flags=re.DOTALL)
    assert len(schemes) == 3

    for scheme in schemes:
        colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", scheme))
        for name in ("ink", "muted", *(f"c{index}" for index in range(1, 8))):
            assert contrast(colours[name], colours["paper"]) >= 4.5, name
        for paper in ("page", "lead", "warn", "unmet"):
            assert contrast(colours["ink"], colours[paper]) >= 4.5, paper
            assert contrast(colours["muted"], colours[paper]) >= 4.5, paper


def test_written_whole(tmp_path: Path) -> None:
    """The file holds the page, and nothing else lies beside it."""
    target = write_html(tmp_path / "report.html", answer("size"), title="x")

    assert target.read_text(encoding="utf-8") == render_html(answer("size"), title="x")
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_a_failed_write_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the file cannot be put in place, the old one stays and no part of the new one is left."""
    target = tmp_path / "report.html"
    target.write_text("old", encoding="utf-8")

    def fails(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", fails)
    with pytest.raises(InputError, match="No space left"):
        write_html(target, answer("size"), title="x")

    assert target.read_text(encoding="utf-8") == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


@pytest.mark.parametrize("place", ["missing/report.html", "x\0y.html"])
def test_a_place_that_cannot_be_written(tmp_path: Path, place: str) -> None:
    """A folder that is not there, and a name that no file can have, are one clear line."""
    with pytest.raises(InputError, match="cannot be written"):
        write_html(tmp_path / place, answer("size"), title="x")


def test_importing_the_report_is_cheap() -> None:
    """Importing the room loads neither matplotlib, nor the template engine, nor rich, nor numpy."""
    heavy = "{'matplotlib', 'jinja2', 'rich', 'numpy'}"
    code = f"import sys, servewise.report; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


def test_markdown_shows_markup_as_text() -> None:
    """A pipe in a cell does not end it, and a star is no emphasis."""
    evil = document("size")
    evil["result"]["breakdown"][0]["name"] = "a|b *c* <i>"
    page = render_markdown(parse_answer(json.dumps(evil)))

    assert r"A\|b \*c\* &lt;i&gt;" in page
