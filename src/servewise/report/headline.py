"""The first thing to read of an answer: the sentence, what binds, and the few numbers that matter."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from servewise.answer import Answer
from servewise.report.headlines import calibrate, check, compare, deploying, load, plan, probes, study, techniques
from servewise.report.headlines.headline import Headline, Number

__all__ = ["Headline", "Number", "headline"]

_BY_COMMAND: Mapping[str, Callable[[Answer], Headline]] = {
    "plan": plan.plan,
    "check": check.check,
    "size": deploying.size,
    "steptime": deploying.steptime,
    "simulate": load.simulate,
    "fleet": load.fleet,
    "bench": load.bench,
    "speculate": techniques.speculate,
    "prefix": techniques.prefix,
    "study": study.study,
    "beside": compare.beside,
    "compare": compare.compare,
    "calibrate": calibrate.calibrate,
    "loop": calibrate.loop,
    "probe-kv": probes.probe_kv,
    "probe-ops": probes.probe_ops,
    "probe-policies": probes.probe_policies,
    "self-test": probes.self_test,
}


def headline(answer: Answer) -> Headline | None:
    """The headline of an answer, None for a command that has none."""
    found = _BY_COMMAND.get(answer.command)
    made = found(answer) if found else None
    return made if made and made.text else None
