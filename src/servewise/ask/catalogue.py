"""What ships by name: models, accelerators, workloads; each with the few numbers that tell them apart."""

from __future__ import annotations

from typing import Any

from servewise.answer import Answer
from servewise.conditions import Conditions
from servewise.errors import UnknownName
from servewise.hardware.catalogue import catalogue as accelerators
from servewise.modelspec.catalogue import entries
from servewise.modelspec.kv import kv_bytes_per_token
from servewise.modelspec.load import load_model, model_names
from servewise.precision import FORMATS
from servewise.version import __version__
from servewise.workload.load import presets

KINDS = ("models", "accelerators", "workloads")


def catalogue(*kinds: str, matching: str = "") -> Answer:
    """The names of these kinds (all, where none is given) that contain ``matching``.

    Raises UnknownName for a kind that is none of models, accelerators, workloads.
    """
    rows = {"models": _models, "accelerators": _accelerators, "workloads": _workloads}
    for kind in kinds:
        if kind not in rows:
            raise UnknownName("kind", kind, KINDS, hint=f"one of {', '.join(KINDS)}")
    wanted = matching.lower()
    chosen = kinds or KINDS
    return Answer(
        command="catalogue",
        conditions=Conditions(
            hardware="as catalogued", load="at rest", lengths="any", precision="16-bit KV cache", version=__version__
        ),
        result={kind: [row for row in rows[kind]() if _named(row, wanted)] for kind in chosen},
    )


def _named(row: dict[str, Any], wanted: str) -> bool:
    """Whether the row's name, or another that it answers to, contains ``wanted``."""
    return any(wanted in name for name in (row["name"], *row.get("also", ())))


def _models() -> list[dict[str, Any]]:
    found = [load_model(name) for name in model_names()]
    return [
        {
            "name": model.name,
            "also": [hub_id.rpartition("/")[2].lower() for hub_id in entries()[model.name].hub],
            "parameters": model.parameters,
            "active_parameters": model.active_parameters,
            "kv_bytes_per_token": kv_bytes_per_token(model, FORMATS["bf16"]),
            "context_tokens": model.max_context_tokens,
        }
        for model in found
    ]


def _accelerators() -> list[dict[str, Any]]:
    return [
        {
            "name": each.name,
            "title": each.title,
            "memory_bytes": each.memory_bytes,
            "bandwidth_bytes_per_s": each.bandwidth_bytes_per_s,
            "bf16_peak_flops": each.peak_flops("bf16"),
        }
        for each in accelerators().values()
    ]


def _workloads() -> list[dict[str, Any]]:
    return [{"name": name, "file": path.name} for name, path in presets().items()]
