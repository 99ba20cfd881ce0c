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
    from servewise.ask.calibrate import calibrate
    from servewise.ask.catalogue import catalogue
    from servewise.ask.check import check
    from servewise.ask.compare import compare
    from servewise.ask.demo import demo
    from servewise.ask.fleet import fleet
    from servewise.ask.measuring import bench, experiment_serve_small, loop, serve
    from servewise.ask.models import fetch_model as models_fetch
    from servewise.ask.models import models
    from servewise.ask.models import write_model as models_write
    from servewise.ask.plan import plan
    from servewise.ask.prefix import prefix
    from servewise.ask.probe_kv import probe_kv
    from servewise.ask.probe_ops import probe_ops
    from servewise.ask.probe_policies import probe_policies
    from servewise.ask.probe_quantise import probe_quantise
    from servewise.ask.probe_speculate import probe_speculate
    from servewise.ask.self_test import self_test
    from servewise.ask.simulate import simulate
    from servewise.ask.size import size
    from servewise.ask.speculate import speculate
    from servewise.ask.steptime import steptime
    from servewise.ask.study import study
    from servewise.caveats import Caveat
    from servewise.conditions import Conditions
    from servewise.errors import InputError, RunFailed, ServewiseError, UnknownName
    from servewise.report.gathering import report

__all__ = [
    "Answer",
    "Caveat",
    "Conditions",
    "InputError",
    "RunFailed",
    "ServewiseError",
    "UnknownName",
    "bench",
    "calibrate",
    "catalogue",
    "check",
    "compare",
    "demo",
    "experiment_serve_small",
    "fleet",
    "loop",
    "models",
    "models_fetch",
    "models_write",
    "plan",
    "prefix",
    "probe_kv",
    "probe_ops",
    "probe_policies",
    "probe_quantise",
    "probe_speculate",
    "report",
    "self_test",
    "serve",
    "simulate",
    "size",
    "speculate",
    "steptime",
    "study",
]

# each question by the room, module and function that answers it
_QUESTIONS = {
    "bench": "ask.measuring.bench",
    "calibrate": "ask.calibrate.calibrate",
    "catalogue": "ask.catalogue.catalogue",
    "check": "ask.check.check",
    "compare": "ask.compare.compare",
    "demo": "ask.demo.demo",
    "experiment_serve_small": "ask.measuring.experiment_serve_small",
    "fleet": "ask.fleet.fleet",
    "loop": "ask.measuring.loop",
    "models": "ask.models.models",
    "models_fetch": "ask.models.fetch_model",
    "models_write": "ask.models.write_model",
    "plan": "ask.plan.plan",
    "prefix": "ask.prefix.prefix",
    "probe_kv": "ask.probe_kv.probe_kv",
    "probe_ops": "ask.probe_ops.probe_ops",
    "probe_policies": "ask.probe_policies.probe_policies",
    "probe_quantise": "ask.probe_quantise.probe_quantise",
    "probe_speculate": "ask.probe_speculate.probe_speculate",
    "report": "report.gathering.report",
    "self_test": "ask.self_test.self_test",
    "serve": "ask.measuring.serve",
    "simulate": "ask.simulate.simulate",
    "size": "ask.size.size",
    "speculate": "ask.speculate.speculate",
    "steptime": "ask.steptime.steptime",
    "study": "ask.study.study",
}
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

    def __init__(self, place: str) -> None:
        self._module, _, self._function = place.rpartition(".")

    def __get__(self, package: ModuleType | None, kind: type[ModuleType]) -> Any:
        return getattr(import_module(f"servewise.{self._module}"), self._function)

    def __set__(self, package: ModuleType, value: object) -> None:
        """The room keeps its place in ``sys.modules``; the attribute stays the question."""


_Package = type("_Package", (ModuleType,), {name: _Question(place) for name, place in _QUESTIONS.items()})
sys.modules[__name__].__class__ = _Package
