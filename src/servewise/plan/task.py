"""What a worker does for a plan: a candidate bounded, screened on a stretch, run on the whole traffic, varied."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from servewise.plan.bracket import bracket
from servewise.plan.clock import Clocks
from servewise.plan.lengths import Lengths, lengths_of
from servewise.plan.question import Question
from servewise.plan.rate import most_per_s
from servewise.plan.search import PRECISION, highest_rate
from servewise.plan.sensitivity import CHANGES, Moved, moved
from servewise.plan.server import Server
from servewise.plan.traffic import Traffic, typical
from servewise.plan.weighing import Possible, Reason, Rejected, Weighed, admitted, server_of, weigh

SLOW, FAST = range(2)
SCREENING = 0.03  # precision of the search on a stretch
Outcome = Weighed | Rejected | Possible


class Wanted(NamedTuple):
    """A candidate by its place; whether its rate is above ``per_s`` is asked, and then which."""

    place: int
    per_s: float
    physical_per_s: float


class OnWhole(NamedTuple):
    """A candidate by its place, with its rate on the stretch and the ratio of whole to stretch that was seen."""

    place: int
    stretch_per_s: float
    ratio: float


class Varied(NamedTuple):
    """A candidate by its place under the clock SLOW or FAST, or on other traffic, by its number."""

    place: int
    kind: str
    number: int
    guess_per_s: float


class Changed(NamedTuple):
    """A candidate by its place with one of CHANGES, by its number; ``before_per_s`` without."""

    place: int
    number: int
    before_per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What every worker holds."""

    question: Question
    stretch: Traffic
    lengths: Lengths
    stretch_lengths: Lengths
    clocks: Clocks

    def server(self, index: int) -> Server:
        """The candidate at work; it was admitted."""
        question, candidate = self.question, self.question.candidates[index]
        clock = self.clocks.of(candidate.deployment)
        server = server_of(candidate, question.estimator, question.hash_block_tokens, clock)
        assert isinstance(server, Server), index
        return server


def task_of(question: Question, stretch_requests: int) -> Task:
    """The task of ``question``, with a typical stretch of so many requests."""
    traffic, hashes = question.traffic, question.hash_block_tokens
    stretch, lengths = typical(traffic, stretch_requests), lengths_of(traffic, hashes)
    return Task(
        question=question,
        stretch=stretch,
        lengths=lengths,
        stretch_lengths=lengths if stretch is traffic else lengths_of(stretch, hashes),
        clocks=Clocks(question.estimator),
    )


def bound(task: Task, index: int) -> Rejected | Possible:
    """What is known of a candidate without a simulation."""
    question, candidate = task.question, task.question.candidates[index]
    found = admitted(
        candidate, task.lengths, question.slo, question.estimator, question.hash_block_tokens, task.clocks.of
    )
    if isinstance(found, Rejected):
        return found
    most = most_per_s(found.server, task.stretch_lengths)
    too_slow = _too_slow(task, index, found.server, most)
    return too_slow or Possible(candidate=candidate, most_per_s=most, physical_per_s=most, alone_s=found.alone_s)


def _too_slow(task: Task, index: int, server: Server, on_stretch: float) -> Rejected | None:
    """A candidate that even at its bound needs more accelerators than there are."""
    question, candidate = task.question, task.question.candidates[index]
    if question.most_accelerators is None:
        return None
    most = on_stretch if task.stretch is question.traffic else most_per_s(server, task.lengths)
    cost = question.cost(candidate, most)
    if question.affords(cost):
        return None
    for_rate = f" for {question.rate_per_s:.3g} requests/s" if question.rate_per_s else ""
    why = f"{cost.accelerators} accelerators are needed{for_rate} even at its bound of {most:.3g} requests/s a replica"
    return Rejected(candidate=candidate, why=f"{why}; there are {question.most_accelerators}", reason=Reason.RATE)


def screened(task: Task, wanted: Wanted) -> Outcome:
    """A candidate on the typical stretch."""
    whole = task.stretch is task.question.traffic
    return weigh(
        task.question.candidates[wanted.place],
        task.server(wanted.place),
        task.stretch,
        task.question.slo,
        physical_per_s=wanted.physical_per_s,
        wanted_per_s=wanted.per_s,
        precision=PRECISION if whole else SCREENING,
        whole=whole,
    )


def tried(task: Task, index: int) -> Outcome:
    """A candidate that a bound rules out, on the whole traffic all the same."""
    question, candidate = task.question, task.question.candidates[index]
    server = task.server(index)
    physical = most_per_s(server, task.lengths)
    return weigh(candidate, server, question.traffic, question.slo, physical_per_s=physical, whole=True)


def on_whole(task: Task, of: OnWhole) -> Outcome:
    """A candidate on the whole traffic."""
    server = task.server(of.place)
    return weigh(
        task.question.candidates[of.place],
        server,
        task.question.traffic,
        task.question.slo,
        physical_per_s=most_per_s(server, task.lengths),
        guess_per_s=of.stretch_per_s * of.ratio,
        stretch_rate_per_s=of.stretch_per_s,
        whole=True,
    )


def varied(task: Task, of: Varied) -> float:
    """The highest rate of a candidate [requests/s] under another clock or on other traffic."""
    question, server = task.question, task.server(of.place)
    if of.kind == "other":
        return highest_rate(server, question.others[of.number], question.slo, of.guess_per_s).rate_per_s
    deployment = question.candidates[of.place].deployment
    clocks = bracket(deployment, question.estimator, server, question.traffic.requests, question.seed)
    if clocks is None:
        return of.guess_per_s
    server = server.timed_by(clocks.slow if of.number == SLOW else clocks.fast)
    return highest_rate(server, task.stretch, question.slo, of.guess_per_s).rate_per_s


def changed(task: Task, of: Changed) -> Moved:
    """How far a change of an input moves a candidate's highest rate."""
    question = task.question
    return moved(
        question.candidates[of.place],
        CHANGES[of.number],
        of.before_per_s,
        task.stretch,
        question.slo,
        question.estimator,
        question.hash_block_tokens,
    )
