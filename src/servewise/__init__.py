"""Servewise: how to serve a large language model, predicted with error bars.

The commands are functions here too, each giving an ``Answer``: ``size``, ``steptime``, ``simulate``, ``fleet``,
``speculate``, ``prefix``, ``plan``, ``check``, ``compare``, ``study`` and ``demo``.

>>> import servewise
>>> servewise.steptime("llama-2-13b", "a100-80gb", batch=1, estimator="ideal").result["rows"][0]["bound"]
'memory'

A question is imported when it is first asked, so ``import servewise`` costs nothing. Some share their name with the
room that answers them; reach into rooms with ``from servewise.simulate.run import simulate``, not through attributes.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from servewise.version import __version__ as __version__

if TYPE_CHECKING:
    from servewise.answer import Answer
    from servewise.ask.check import check
    from servewise.ask.compare import compare
    from servewise.ask.demo import demo
    from servewise.ask.fleet import fleet
    from servewise.ask.plan import plan
    from servewise.ask.prefix import prefix
    from servewise.ask.simulate import simulate
    from servewise.ask.size import size
    from servewise.ask.speculate import speculate
    from servewise.ask.steptime import steptime
    from servewise.ask.study import study
    from servewise.caveats import Caveat
    from servewise.conditions import Conditions
    from servewise.errors import InputError, RunFailed, ServewiseError, UnknownName

__all__ = [
    "Answer",
    "Caveat",
    "Conditions",
    "InputError",
    "RunFailed",
    "ServewiseError",
    "UnknownName",
    "check",
    "compare",
    "demo",
    "fleet",
    "plan",
    "prefix",
    "simulate",
    "size",
    "speculate",
    "steptime",
    "study",
]

_QUESTIONS = (
    "check",
    "compare",
    "demo",
    "fleet",
    "plan",
    "prefix",
    "simulate",
    "size",
    "speculate",
    "steptime",
    "study",
)
_TYPES = {
    "Answer": "answer",
    "Caveat": "caveats",
    "Conditions": "conditions",
    "InputError": "errors",
    "RunFailed": "errors",
    "ServewiseError": "errors",
    "UnknownName": "errors",
}


def __getattr__(name: str) -> Any:
    if name in _TYPES:
        return getattr(import_module(f"servewise.{_TYPES[name]}"), name)
    raise AttributeError(f"module 'servewise' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _Question:
    """A question as an attribute of the package.

    A data descriptor stands before the module's own names, so that the import system, which binds the room
    ``servewise.simulate`` to the package when anything imports it, cannot hide the question of the same name.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, package: ModuleType | None, kind: type[ModuleType]) -> Any:
        return getattr(import_module(f"servewise.ask.{self._name}"), self._name)

    def __set__(self, package: ModuleType, value: object) -> None:
        """The room keeps its place in ``sys.modules``; the attribute stays the question."""


_Package = type("_Package", (ModuleType,), {name: _Question(name) for name in _QUESTIONS})
sys.modules[__name__].__class__ = _Package
