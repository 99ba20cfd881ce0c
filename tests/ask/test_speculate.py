"""Speculation against the study and against what large batches do to it."""

from __future__ import annotations

import pytest

from servewise.ask.speculate import speculate
from servewise.errors import InputError


@pytest.mark.parametrize(
    ("cost", "acceptance", "k", "speedup"),
    [
        (0.05, 0.5, 3, 1.63),
        (0.05, 0.7, 6, 2.35),
        (0.05, 0.8, 8, 3.09),
        (0.05, 0.9, 13, 4.67),
        (0.128, 0.5, 2, 1.39),
        (0.128, 0.7, 4, 1.83),
        (0.128, 0.8, 5, 2.25),
        (0.128, 0.9, 9, 3.03),
    ],
)
def test_the_studys_table(cost: float, acceptance: float, k: int, speedup: float) -> None:
    """Best K and speed-up of the study, to its two decimals, and its row among those by acceptance."""
    result = speculate(acceptance=acceptance, draft_cost=cost).result

    assert result["best_k"] == k
    assert round(result["speedup"], 2) == speedup
    (row,) = (each for each in result["by_acceptance"] if each["acceptance"] == acceptance)
    assert (row["best_k"], round(row["speedup"], 2)) == (k, speedup)


def test_rows_start_with_plain_decoding() -> None:
    """K = 0 is no speculation: one token, no speed-up; K = 4 at 0.8 yields the study's 3.36."""
    rows = speculate(acceptance=0.8, draft_cost=0.128, max_k=4).result["rows"]

    assert rows[0] == {"k": 0, "tokens_per_verification": 1.0, "speedup": 1.0}
    assert round(rows[4]["tokens_per_verification"], 2) == 3.36


def test_the_gain_falls_with_the_batch() -> None:
    """Verifying K + 1 tokens of each of 512 sequences is compute-bound: less gain than at batch 1."""
    found = speculate(
        "llama-2-13b",
        "h100-sxm",
        draft="tinyllama-1.1b",
        acceptance=0.7,
        batch=[1, 512],
        context=256,
        estimator="ideal",
    ).result["by_batch"]

    assert found[0]["speedup"] > 1.5
    assert found[1]["speedup"] < found[0]["speedup"]
    assert found[1]["best_k"] < found[0]["best_k"]


def test_at_batch_one_the_ideal_is_nearly_the_closed_form() -> None:
    """Memory-bound verification costs one step, so the models' rows meet the formula at their own draft cost."""
    found = speculate(
        "llama-2-13b", "a100-80gb", draft="tinyllama-1.1b", acceptance=0.8, batch=1, estimator="ideal"
    ).result
    closed = speculate(acceptance=0.8, draft_cost=found["draft_cost"]).result

    assert found["best_k"] == closed["best_k"]
    assert found["speedup"] == pytest.approx(closed["speedup"], rel=0.02)


def test_a_draft_as_slow_as_its_target_does_not_pay() -> None:
    """With c = 1 no length pays: best K is 0 and a model as its own draft says so."""
    answer = speculate("llama-2-13b", "a100-80gb", draft="llama-2-13b", acceptance=0.9, batch=1)

    assert answer.result["best_k"] == 0
    assert "speculation-loses" in {each.code for each in answer.caveats}


@pytest.mark.parametrize(
    "options",
    [
        {"acceptance": 1.2, "draft_cost": 0.1},
        {"acceptance": 0.5, "draft_cost": -0.1},
        {"acceptance": 0.5},
        {"acceptance": 0.5, "draft": "tinyllama-1.1b"},
        {"acceptance": 0.5, "draft_cost": 0.1, "max_k": 0},
        {"model": "llama-2-13b", "accelerator": "a100-80gb", "acceptance": 0.5},
        {"model": "llama-2-13b", "accelerator": "a100-80gb", "acceptance": 0.5, "draft_cost": 0.1},
    ],
)
def test_half_a_question_is_refused(options: dict[str, object]) -> None:
    """Neither or both ways of asking, rates outside 0 to 1, negative costs: one clear line each."""
    with pytest.raises(InputError):
        speculate(**options)  # type: ignore[arg-type]
