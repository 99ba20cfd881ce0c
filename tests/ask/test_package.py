"""``import servewise`` offers the questions, whatever was imported before, and costs nothing until one is asked."""

from __future__ import annotations

import subprocess
import sys

import servewise
import servewise.ask.size
import servewise.simulate.run
import servewise.steptime.api

HEAVY = ("numpy", "click", "rich", "matplotlib", "jinja2", "arro3.core", "servewise.ask.size")


def test_questions_are_functions_although_rooms_share_their_names() -> None:
    """The rooms ``simulate`` and ``steptime`` are imported above; the package still offers the questions."""
    for name in ("demo", "plan", "prefix", "simulate", "size", "speculate", "steptime", "study"):
        question = getattr(servewise, name)

        assert callable(question), name
        assert question.__module__ == f"servewise.ask.{name}"


def test_questions_are_typed_and_documented() -> None:
    """Each has a docstring, an Answer as its result, and a type for every parameter."""
    for name in ("demo", "plan", "prefix", "simulate", "size", "speculate", "steptime", "study"):
        question = getattr(servewise, name)

        assert question.__doc__
        assert question.__annotations__["return"] == "Answer"
        code = question.__code__
        for parameter in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
            assert parameter in question.__annotations__, (name, parameter)


def test_all_that_is_named_is_there() -> None:
    """Everything in ``__all__`` can be had, and nothing else is found by a wrong name."""
    for name in servewise.__all__:
        assert getattr(servewise, name) is not None
    assert not hasattr(servewise, "simulat")


def test_import_is_cheap() -> None:
    """A bare import brings in none of the dependencies and no room."""
    code = "import sys, servewise; print(*[name for name in sys.argv[1:] if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code, *HEAVY], capture_output=True, text=True, check=True)

    assert found.stdout.strip() == ""


def test_the_same_answer_as_the_room_gives() -> None:
    """The package's question is the one in ``ask``."""
    assert servewise.size is servewise.ask.size.size
