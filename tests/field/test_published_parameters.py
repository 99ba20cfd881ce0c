"""Parameter totals against those that publishers and the reference implementation count."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from servewise.modelspec.load import load_model, model_names
from servewise.modelspec.spec import ModelSpec

DATA = Path(__file__).parent / "data"
BAR = 0.005  # relative deviation allowed from a published total


def rows(name: str) -> list[dict[str, str]]:
    """The rows of a data file."""
    with (DATA / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def counted(model: ModelSpec, counts: str) -> int:
    """Our total of what a published figure counts."""
    drafting = model.drafting_parameters if "drafting" in counts else 0
    return model.parameters + drafting + (model.tower_parameters if "vision" in counts else 0)


@pytest.mark.parametrize("row", rows("published_parameters.csv"), ids=lambda row: row["model"])
def test_totals_equal_the_published_ones(row: dict[str, str]) -> None:
    """A model's total is within 0.5% of the published count of the same parts."""
    published = int(row["parameters"])

    ours = counted(load_model(row["model"]), row["counts"])

    assert abs(ours - published) <= BAR * published, (
        f"{ours} against {published}: {(ours - published) / published:+.3%}"
    )


@pytest.mark.parametrize("row", rows("reference_parameters.csv"), ids=lambda row: row["model"])
def test_totals_equal_the_reference_implementation(row: dict[str, str]) -> None:
    """A model's total equals, to the parameter, what transformers allocates for the same config."""
    assert load_model(row["model"]).parameters == int(row["parameters"])


def test_nearly_every_shipped_model_has_a_reference() -> None:
    """Only text parts of vision models, which no causal class loads alone, lack a reference count."""
    known = {row["model"] for row in rows("reference_parameters.csv")}

    assert all(name.startswith("qwen3-vl") for name in set(model_names()) - known)


def test_text_parts_of_vision_models_equal_their_twins() -> None:
    """Qwen3-VL's language model has the widths of Qwen3, so the same published total."""
    published = {row["model"]: int(row["parameters"]) for row in rows("published_parameters.csv")}

    for size in ("4b", "8b", "32b", "30b-a3b", "235b-a22b"):
        assert load_model(f"qwen3-vl-{size}").parameters == published[f"qwen3-{size}"]


def test_active_parameters_are_the_published_ones() -> None:
    """Active totals are those of the papers: Mixtral 12.9B, DeepSeek-V3 37B, Qwen3-235B 22B, Kimi K2 32B (rounded)."""
    stated = {"mixtral-8x7b": 12.9, "deepseek-v3": 37, "qwen3-235b-a22b": 22, "qwen3-30b-a3b": 3.3, "deepseek-v2": 21}

    for name, billions in stated.items():
        assert load_model(name).active_parameters == pytest.approx(billions * 1e9, rel=0.02)
