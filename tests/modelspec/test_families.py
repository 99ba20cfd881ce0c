"""Every family against the reference implementation, on small configs with fields left out at random."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from servewise.modelspec.families.table import FAMILIES
from servewise.modelspec.hf_config import parse_config

DATA = Path(__file__).parents[1] / "field" / "data" / "small_configs.jsonl"
ROWS: list[dict[str, Any]] = [json.loads(line) for line in DATA.read_text(encoding="utf-8").splitlines()]
TEXT_PARTS = {"qwen3_vl_text": "qwen3", "qwen3_vl_moe_text": "qwen3_moe", "kimi_k2": "deepseek_v3", "mimo": "qwen2"}


@pytest.mark.parametrize("family", sorted({row["config"]["model_type"] for row in ROWS}))
def test_a_family_counts_as_the_reference_does(family: str) -> None:
    """Each small config has, to the parameter, what transformers 5.24 allocates for it, defaults included."""
    for row in ROWS:
        if row["config"]["model_type"] == family:
            assert parse_config(row["config"], name=family).parameters == row["parameters"], row["config"]


def test_every_family_is_compared() -> None:
    """No reader goes without a reference: a family is in the data or shares its widths with one that is."""
    compared = {row["config"]["model_type"] for row in ROWS}

    assert set(FAMILIES) - compared <= set(TEXT_PARTS)
    assert set(TEXT_PARTS.values()) <= compared
