"""Workloads that no run could end, or that contradict themselves, are refused by one line."""

from __future__ import annotations

import pytest

from servewise.errors import InputError
from servewise.workload.arrivals import Poisson
from servewise.workload.conversations import Conversations
from servewise.workload.lengths import Fixed
from servewise.workload.thinking import Thinking
from servewise.workload.traces.readers import read


def test_conversations_that_would_settle_for_ever_are_refused() -> None:
    """A billion turns a second over a settling of minutes are more conversations than any run gets through."""
    talk = Conversations(
        turns=Fixed(4),
        user_tokens=Fixed(10),
        output_tokens=Fixed(10),
        count=10,
        arrivals=Poisson(1.0),
        thinking=Thinking(20.0),
    )
    with pytest.raises(InputError, match="before the first one counts"):
        talk.at_rate(1e9).session(0)
    assert talk.at_rate(1e3).session(0).settle_s == 120


def test_a_prompt_that_names_a_block_twice_is_refused() -> None:
    """A hash stands for all tokens up to its block's end, so no two of one prompt are equal."""
    line = '{"arrival_s": 0.0, "prompt_tokens": 64, "output_tokens": 5, "block_hashes": [7, 8, 7, 9]}'
    with pytest.raises(InputError, match="twice"):
        list(read(iter([line]), "own.jsonl").rows)


def test_a_rate_whose_gaps_overflow_is_refused() -> None:
    """The gap between arrivals at 1e-308/s is beyond what a double holds."""
    with pytest.raises(InputError, match="1e-300"):
        Poisson(1e-308)
