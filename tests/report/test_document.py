"""Documents from files: read back as written, refused in one line where they are no answer."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.golden.outline import outline
from tests.report.documents import FOLDER, NAMES, document

from servewise.answer import Answer
from servewise.errors import InputError
from servewise.report import load_answer, parse_answer, print_answer, render_html, render_markdown, terminal_console


@pytest.mark.parametrize("name", NAMES)
def test_a_document_comes_back_as_it_was_written(name: str) -> None:
    """What ``--json`` writes is what loading gives."""
    loaded = load_answer(FOLDER / f"{name}.json")

    assert loaded.to_json() == document(name)
    assert parse_answer(loaded.dumps()).to_json() == document(name)


def changed(name: str, value: Any) -> str:
    """A size document with one key replaced."""
    return json.dumps({**document("size"), name: value})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not JSON"),
        ("[1, 2]", "not a JSON object"),
        ("{", "not JSON"),
        ('{"schema": NaN}', "not JSON"),
        ("[" * 100_000, "nested too deeply"),
        ("1" * 5_000, "not JSON"),
        (changed("schema", "other/1"), "servewise.COMMAND/1"),
        (changed("schema", "servewise.size/2"), "update servewise"),
        (changed("schema", 7), "servewise.COMMAND/1"),
        (changed("result", [1]), "'result'"),
        (changed("conditions", None), "without its conditions"),
        (changed("conditions", {"hardware": "x"}), "'load' is missing"),
        (changed("conditions", {**document("size")["conditions"], "colour": "x"}), "unknown key 'colour'"),
        (changed("conditions", {**document("size")["conditions"], "load": 3}), "'load' is not text"),
        (changed("conditions", {**document("size")["conditions"], "seeds": ["a"]}), "'seeds'"),
        (changed("caveats", [{"code": "x"}]), "{code, message, cure}"),
        (changed("caveats", "x"), "'caveats' is not a list"),
        (changed("extra", 1), "unknown key 'extra'"),
    ],
)
def test_what_is_no_answer_is_refused(text: str, words: str) -> None:
    """Each defect is one line that names the file and what is wrong."""
    with pytest.raises(InputError) as caught:
        parse_answer(text, where="plan.json")

    assert str(caught.value).startswith("plan.json")
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_deeply_nested_result_is_refused() -> None:
    """Nesting that the parser survives but a reader would not is refused too."""
    with pytest.raises(InputError, match="deep"):
        parse_answer(changed("result", json.loads('{"a":' * 60 + "1" + "}" * 60)))


@pytest.mark.parametrize("make", [lambda path: path, lambda path: path / "missing.json"], ids=["folder", "missing"])
def test_what_cannot_be_read(tmp_path: Path, make: Callable[[Path], Path]) -> None:
    """A folder without a run and a missing file are named, not traced."""
    with pytest.raises(InputError):
        load_answer(make(tmp_path))


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    """A binary file is refused as such."""
    path = tmp_path / "x.json"
    path.write_bytes(b"\xff\xfe\x00\x80{}")

    with pytest.raises(InputError):
        load_answer(path)


def test_texts_come_out_clean() -> None:
    """Escape sequences in a document cannot reach a terminal."""
    loaded = parse_answer(changed("result", {"\u001b[31mkey": "a\u001b]0;title\u0007b", "\ud800": "\u202e"}))

    assert "\x1b" not in str(loaded.result)
    loaded.dumps().encode("utf-8")


LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["", "<script>alert(1)</script>", "\x1b[31m", "$x$", "a" * 300, "| * `", "\u202e", "{{ 7 * 7 }}"])
)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a JSON value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for key, item in inner for found in places(item, (*path, key)))]


def put(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """``value`` with ``new`` at ``path``."""
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = put(value[path[0]], path[1:], new)
    return copy


@st.composite
def damaged_answers(draw: st.DrawFn) -> Answer | None:
    """A command's answer with any values at any places; None where the document is refused."""
    damaged: Any = document(draw(st.sampled_from(NAMES)))
    for _ in range(draw(st.integers(1, 4))):
        damaged = put(damaged, draw(st.sampled_from(places(damaged))), draw(VALUES))
    try:
        return parse_answer(json.dumps(damaged))
    except InputError:
        return None


@settings(max_examples=80, deadline=None)
@given(damaged_answers())
def test_a_damaged_document_is_printed_or_refused(answer: Answer | None) -> None:
    """With any values at any places of any command's document, terminal and Markdown are made, without an escape."""
    assume(answer is not None)
    assert answer is not None
    out = io.StringIO()
    print_answer(answer, terminal_console(out))

    assert "\x1b" not in out.getvalue()
    assert "\x1b" not in render_markdown(answer)


@settings(max_examples=20, deadline=None)
@given(damaged_answers())
def test_a_damaged_document_is_drawn_or_refused(answer: Answer | None) -> None:
    """The same of the HTML report: charts are drawn from what can be drawn, every tag is closed, nothing is script."""
    assume(answer is not None)
    assert answer is not None

    page = render_html(answer, title="x")

    assert "<script" not in page
    outline(page)


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=80) | st.text(max_size=80).map(lambda text: text.encode("utf-8", "replace")))
def test_any_bytes_are_an_answer_or_one_line(data: bytes) -> None:
    """Nothing but InputError comes of bytes that are no answer."""
    with pytest.raises(InputError):
        parse_answer(data)
