"""All rules over one launch."""

from __future__ import annotations

from servewise.check.engines.launch import Launch
from servewise.check.engines.settings import Settings
from servewise.check.finding import Finding
from servewise.check.launches.memory import memory
from servewise.check.launches.operation import operation
from servewise.check.launches.options import options
from servewise.check.launches.parallelism import parallelism
from servewise.check.launches.precision import precision
from servewise.check.launches.prefix import prefix
from servewise.check.launches.scheduling import scheduling
from servewise.check.launches.speculation import speculation
from servewise.check.sizing import sizing_of
from servewise.hardware.accelerator import Accelerator
from servewise.modelspec.spec import ModelSpec


def check_launch(
    launch: Launch, model: ModelSpec | None = None, accelerator: Accelerator | None = None
) -> list[Finding]:
    """Every finding in one launch; sizes and times where ``model`` and ``accelerator`` are known."""
    settings = Settings(launch)
    sizing = sizing_of(settings, model, accelerator) if model is not None and accelerator is not None else None
    return [
        *options(settings),
        *memory(settings, sizing),
        *scheduling(settings, sizing),
        *parallelism(settings, model),
        *speculation(settings),
        *precision(settings, sizing),
        *prefix(settings),
        *operation(settings),
    ]
