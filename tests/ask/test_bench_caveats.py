"""What stands beside the figures of a measurement."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from servewise.ask.bench_caveats import _repeats


def _run(tokens_per_s: float) -> Any:
    times = SimpleNamespace(p50=0.1)
    return SimpleNamespace(summary=SimpleNamespace(ttft=times, tpot=times, output_tokens_per_s=tokens_per_s))


@pytest.mark.parametrize(
    ("tokens_per_s", "said"),
    [([15.3, 24.5], ["output_tokens_per_s +/- 294%"]), ([100.0, 101.0, 99.0], []), ([15.3], [])],
)
def test_repeats_that_differ_are_said(tokens_per_s: list[float], said: list[str]) -> None:
    """Two repeats of 15.3 and 24.5 have a mean of 19.9 and a 95% interval of 12.706 x 4.6 = 58.4 to either side."""
    asked: Any = SimpleNamespace(options=SimpleNamespace(ci=None))
    found = list(_repeats(asked, [_run(each) for each in tokens_per_s]))

    assert [each.code for each in found] == ["repeats-differ"] * len(said)
    assert all(any(each in caveat.message for caveat in found) for each in said)


def test_the_stand_in_server_is_not_started_by_hand() -> None:
    """Its module alone says in one line who starts it."""
    done = subprocess.run(
        [sys.executable, "-m", "servewise.measure.mock", "--help"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode != 0
    assert "running_mock" in done.stderr
    assert "Traceback" not in done.stderr
