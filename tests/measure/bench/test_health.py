"""When a run is given up, and when it is not."""

from __future__ import annotations

from tests.measure.exchanges import exchange

from servewise.measure.bench.health import FEWEST_FAILED, GONE_S, Health
from servewise.measure.outcome import Outcome


class Clock:
    """A clock that stands still until it is told to move."""

    now = 0.0

    def __call__(self) -> float:
        """The time."""
        return self.now


def seen(*outcomes: Outcome, every_s: float = 1.0) -> Health:
    """Health after these ends, one after each interval."""
    clock = Clock()
    health = Health(clock)
    for outcome in outcomes:
        health.see(exchange(outcome=outcome, reason="because"))
        clock.now += every_s
    return health


def test_a_server_that_refuses_for_five_seconds_is_gone() -> None:
    """Six refusals over five seconds, with the reason of the last."""
    assert "gone: refused: because" in seen(*[Outcome.REFUSED] * 6).reason
    assert seen(*[Outcome.REFUSED] * 5, every_s=GONE_S / 5).reason == ""


def test_a_burst_of_refusals_or_two_slow_ones_are_no_death() -> None:
    """A hundred at once may be a full accept queue; two in a minute may be chance."""
    assert seen(*[Outcome.RESET] * 99, every_s=0.01).reason == ""
    assert seen(Outcome.REFUSED, Outcome.REFUSED, every_s=60).reason == ""


def test_a_run_that_ends_in_refusals_ends_in_a_dead_server() -> None:
    """The last three refused at once: gone, though no five seconds went by; two, or a reset last, are chance."""
    ends = {3: [Outcome.COMPLETED, *[Outcome.REFUSED] * 3], 2: [Outcome.COMPLETED, *[Outcome.REFUSED] * 2]}
    found = {count: seen(*outcomes, every_s=0.01) for count, outcomes in ends.items()}
    dropped = seen(*[Outcome.RESET] * 9, every_s=0.01)
    for each in (*found.values(), dropped):
        each.over()
    assert "gone" in found[3].reason
    assert (found[2].reason, dropped.reason) == ("", "")


def test_a_success_between_refusals_starts_the_count_again() -> None:
    """A server that still answers some is there."""
    mixed = [Outcome.REFUSED, Outcome.REFUSED, Outcome.COMPLETED] * 20

    assert seen(*mixed).reason == ""
    assert seen(*([Outcome.REFUSED] * 2 + [Outcome.SERVER_ERROR]) * 9).reason == ""


def test_a_run_in_which_everything_fails_ends_after_a_hundred() -> None:
    """Not one completed; with one success among them it goes on."""
    assert seen(*[Outcome.SERVER_ERROR] * (FEWEST_FAILED - 1)).reason == ""
    assert f"first {FEWEST_FAILED} requests all failed" in seen(*[Outcome.SERVER_ERROR] * FEWEST_FAILED).reason
    assert seen(Outcome.COMPLETED, *[Outcome.SERVER_ERROR] * 500).reason == ""


def test_what_the_end_of_a_run_cut_off_is_no_failure() -> None:
    """Cancelled requests say nothing of the server."""
    assert seen(*[Outcome.CANCELLED] * 500).reason == ""
