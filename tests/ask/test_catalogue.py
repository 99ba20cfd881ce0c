"""The catalogue as an answer: every name in it is one that the other questions take."""

from __future__ import annotations

import pytest

from servewise.ask.catalogue import catalogue
from servewise.ask.names import accelerator_named, model_named
from servewise.errors import UnknownName


def test_every_name_is_one_that_the_other_questions_take() -> None:
    """Models and accelerators listed here load by the name listed, and there are as many as the issue asks for."""
    result = catalogue().result

    assert len(result["accelerators"]) >= 30
    assert all(accelerator_named(row["name"]).name == row["name"] for row in result["accelerators"])
    assert all(model_named(row["name"]).parameters == row["parameters"] for row in result["models"])


def test_one_kind_and_a_part_of_the_name() -> None:
    """Only the kind that is asked for, only the names that contain the text."""
    result = catalogue("accelerators", matching="h100").result

    assert set(result) == {"accelerators"}
    assert {"h100-sxm", "h100-pcie"} <= {row["name"] for row in result["accelerators"]}
    assert all("h100" in row["name"] for row in result["accelerators"])


def test_an_unknown_kind_is_refused() -> None:
    """With the kinds that there are."""
    with pytest.raises(UnknownName, match="models"):
        catalogue("model")
