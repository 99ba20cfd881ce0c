"""What a plan's answer says beside its ranking."""

from __future__ import annotations

from dataclasses import replace

from tests.plan.made import candidate, poisson, weighed

from servewise.ask.launching import fetched_as
from servewise.ask.planned_caveats import caveats_of
from servewise.metrics.slo import parse_slo
from servewise.plan.planner import Planned, Pruning
from servewise.plan.question import Question
from servewise.plan.ranking import measure

QUESTION = Question(
    candidates=(candidate("a100-80gb"), candidate("h100-sxm")),
    traffic=poisson(50),
    slo=parse_slo("ttft_p95<=2s"),
    prices={"a100-80gb": 2.0, "h100-sxm": 3.5},
    rate_per_s=5.0,
)


def planned(low_a100: float, low_h100: float) -> Planned:
    """One A100 carries the rate by its middle figure, one H100 by far; the low ends are given."""
    found = (weighed(QUESTION.candidates[0], 5.5), weighed(QUESTION.candidates[1], 9.0))
    return Planned(
        ranking=found,
        costs=tuple(QUESTION.cost(each.candidate, each.rate_per_s) for each in found),
        intervals={0: (low_a100, 6.0), 1: (low_h100, 10.0)},
        rejected=(),
        by=measure(priced=True, rate_asked=True),
        pruning=Pruning(prunes=True, rejected={}, dominated=0, ended_early=0, weighed=2),
    )


def cure(question: Question, found: Planned) -> str:
    """What the caveat about the interval advises."""
    (caveat,) = (each for each in caveats_of(question, found) if each.code == "rate-in-interval")
    return caveat.cure


def test_to_be_sure_may_be_another_than_the_winner() -> None:
    """Two A100 cost $4.00 an hour, one H100 that carries the rate at its low end $3.50: not the winner twice."""
    text = cure(QUESTION, planned(4.8, 8.0))

    assert "1 replica of 1 x NVIDIA H100" in text
    assert "$3.50" in text


def test_to_be_sure_may_be_the_winner_more_often() -> None:
    """If one H100 may fall short too, two of them cost $7.00, and two A100 $4.00."""
    text = cure(QUESTION, planned(4.8, 4.9))

    assert text.startswith("2 replicas to be sure")
    assert "$4.00" in text


def test_nobody_is_sure_where_the_accelerators_do_not_suffice() -> None:
    """With one accelerator and no low end above the rate there is nothing to advise but to measure."""
    assert cure(replace(QUESTION, most_accelerators=1), planned(4.8, 4.9)) == "measure before you buy"


def test_a_config_is_fetched_by_its_folder() -> None:
    """Engines are given the folder of a checkpoint, wherever its config was named from."""
    assert fetched_as("config.json", "mine") == "."
    assert fetched_as("models/mine/config.json", "mine") == "models/mine"
    assert fetched_as("/config.json", "mine") == "/"
    assert fetched_as("models/mine", "mine") == "models/mine"
