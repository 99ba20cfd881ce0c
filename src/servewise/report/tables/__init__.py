"""Each command's result as tables: one file a command, shared by terminal, HTML and Markdown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from servewise.report.reading import Row
from servewise.report.table import Table
from servewise.report.tables import (
    bench,
    bench_quality,
    beside,
    calibrate,
    catalogue,
    check,
    compare,
    experiment,
    fleet,
    loop,
    made_by,
    plan,
    prefix,
    probe_kv,
    probe_ops,
    probe_policies,
    probe_quantise,
    probe_speculate,
    self_test,
    simulate,
    size,
    speculate,
    steptime,
    study,
    unknown,
)

_BY_COMMAND: Mapping[str, Callable[[Row], tuple[Table, ...]]] = {
    "size": size.tables,
    "catalogue": catalogue.tables,
    "check": check.tables,
    "steptime": steptime.tables,
    "simulate": simulate.tables,
    "fleet": fleet.tables,
    "bench": bench.tables,
    "bench-quality": bench_quality.tables,
    "beside": beside.tables,
    "experiment": experiment.tables,
    "calibrate": calibrate.tables,
    "loop": loop.tables,
    "speculate": speculate.tables,
    "prefix": prefix.tables,
    "plan": plan.tables,
    "study": study.tables,
    "compare": compare.tables,
    "probe-kv": probe_kv.tables,
    "probe-ops": probe_ops.tables,
    "probe-policies": probe_policies.tables,
    "probe-quantise": probe_quantise.tables,
    "probe-speculate": probe_speculate.tables,
    "self-test": self_test.tables,
}


def tables_of(command: str, result: Mapping[str, Any]) -> tuple[Table, ...]:
    """The tables of a result; those of a command without its own drawing show its plain values."""
    found = (*_BY_COMMAND.get(command, unknown.tables)(result), *made_by.tables(result))
    return tuple(table for table in found if table.cells and table.columns)
