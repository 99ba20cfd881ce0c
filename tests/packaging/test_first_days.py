"""What an extra is put to: passed only by what does its job, with stand-ins for the installed command."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from release.first_days import served, swept
from release.place import Failed, Place
from tests.packaging.index import serving

SERVER = """#!{python}
import json, signal, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit({code}))
print(json.dumps({{"result": {{"url": "http://127.0.0.1:{port}"}}}}, indent=2), flush=True)
signal.pause()
"""
SWEEP = """#!{python}
import sys
print('{{"result": [%d]}}' % ("--executor" in sys.argv and {off}))
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A place in which nothing is installed; its interpreter is what a test writes there."""
    monkeypatch.setattr(Place, "uv", lambda *_, **__: "")
    place = Place(tmp_path, tmp_path / "servewise-1-py3-none-any.whl", "error")
    place.python.parent.mkdir(parents=True)
    return place


def stand_in(here: Place, program: str, **words: object) -> None:
    """Let ``program`` answer in the interpreter's place."""
    here.python.write_text(program.format(python=sys.executable, **words))
    here.python.chmod(0o755)


def answering(*texts: str) -> Any:
    """A chat that gives those texts in turn, of three tokens each."""
    left: Iterator[str] = iter(texts)
    return lambda _: {"choices": [{"message": {"content": next(left)}}], "usage": {"completion_tokens": 3}}


def test_a_sweep_must_give_the_same_document(here: Place) -> None:
    """The local document passes; one that differs fails."""
    stand_in(here, SWEEP, off=0)
    assert swept(here) == "a sweep on Ray gives the local document"

    stand_in(here, SWEEP, off=7)
    with pytest.raises(Failed, match="another document"):
        swept(here)


@pytest.mark.parametrize(
    ("texts", "code", "wrong"),
    [
        (("It is Paris.", "It is Paris."), 0, None),
        (("It is Paris.", "Paris it is."), 0, "the engine answered"),
        (("It is Rome.", "It is Rome."), 0, "the engine answered 'It is Rome.'"),
        (("It is Paris.", "It is Paris."), 3, "the server ended with 3"),
    ],
)
def test_a_server_must_answer_and_end(here: Place, texts: tuple[str, ...], code: int, wrong: str | None) -> None:
    """The right answer, twice the same, and a clean end on SIGTERM; each that lacks is told."""
    with serving(lambda _: 404, answering(*texts)) as port:
        stand_in(here, SERVER, port=port, code=code)
        if wrong is None:
            assert served(here) == "the engine answers 'It is Paris.'"
        else:
            with pytest.raises(Failed, match=wrong):
                served(here)


def test_a_server_that_does_not_start_is_told(here: Place) -> None:
    """Its last words are; nothing is waited for."""
    stand_in(here, "#!{python}\nraise SystemExit('the engine is not installed')\n")

    with pytest.raises(Failed, match="no server: the engine is not installed"):
        served(here)


def test_an_engine_with_gpu_libraries_is_not_fetched(here: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where uv would bring a build of torch for accelerators, it is said which libraries, and nothing is installed."""
    asked: list[tuple[Any, ...]] = []

    def uv(_: Place, *words: Any, merged: bool = False) -> str:
        asked.append(words)
        return (
            json.dumps(words)
            if not merged
            else "Would install\n + torch==2.13.0\n + nvidia-cublas==13.1\n + triton==3.7\n"
        )

    monkeypatch.setattr(Place, "uv", uv)
    with pytest.raises(Failed, match="it would bring nvidia-cublas, triton"):
        here.install(("engine",), lowest=False)

    assert ["--dry-run" in each for each in asked] == [True]
    assert "torch==2.13.0" in asked[0]
    here.install(("fit",), lowest=False)
    assert ["--dry-run" in each for each in asked] == [True, False]
