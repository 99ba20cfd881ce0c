"""What a field offers while one types: names of the catalogue, each with a word that tells it apart."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from servewise.app.views.own_traffic import OWN
from servewise.ask.catalogue import catalogue
from servewise.report.wording import size

Suggestion = tuple[str, str]  # the value, and the words beside it


@cache
def suggestions() -> Mapping[str, tuple[Suggestion, ...]]:
    """The lists by name: models, accelerators, workloads (with the sliders'), and logs (without)."""
    found = catalogue().result
    workloads = tuple((each["name"], each["file"]) for each in found["workloads"])
    return {
        "models": tuple((each["name"], f"{each['parameters'] / 1e9:.3g} B parameters") for each in found["models"]),
        "accelerators": tuple(
            (each["name"], f"{each['title']}, {size(each['memory_bytes'])}") for each in found["accelerators"]
        ),
        "workloads": (*workloads, (OWN, "by the sliders below")),
        "logs": workloads,
    }
