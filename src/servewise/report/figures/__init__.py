"""From an answer to its figures: each file reads one command's keys and hands plain data to a chart."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from servewise.answer import Answer
from servewise.report.charts.figure import Figure
from servewise.report.figures import (
    bench,
    calibrate,
    compare,
    experiment,
    fleet,
    loop,
    plan,
    prefix,
    probe_kv,
    probe_ops,
    probe_policies,
    probe_quantise,
    probe_speculate,
    simulate,
    size,
    speculate,
    steptime,
    study,
)

_BY_COMMAND: Mapping[str, Callable[[Answer], list[Figure]]] = {
    "size": size.figures,
    "steptime": steptime.figures,
    "simulate": simulate.figures,
    "fleet": fleet.figures,
    "bench": bench.figures,
    "compare": compare.figures,
    "experiment": experiment.figures,
    "calibrate": calibrate.figures,
    "loop": loop.figures,
    "speculate": speculate.figures,
    "prefix": prefix.figures,
    "plan": plan.figures,
    "study": study.figures,
    "probe-kv": probe_kv.figures,
    "probe-ops": probe_ops.figures,
    "probe-policies": probe_policies.figures,
    "probe-quantise": probe_quantise.figures,
    "probe-speculate": probe_speculate.figures,
}


def figures_of(answer: Answer) -> list[Figure]:
    """The figures of ``answer``; those whose data are not there are left out."""
    drawn = _BY_COMMAND.get(answer.command)
    return drawn(answer) if drawn else []
