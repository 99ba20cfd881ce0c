"""Under which conditions simulated figures hold, in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from servewise.ask.deploying import conditions_of
from servewise.ask.machine import Machine
from servewise.ask.offered import Offered
from servewise.ask.serving import describe, lengths_of
from servewise.batching.policies import Policy
from servewise.conditions import Conditions


def simulate_conditions(
    machine: Machine, policies: Sequence[Policy], offered: Offered, seeds: Iterable[int]
) -> Conditions:
    """The deployment's, with every policy, the load and the seeds."""
    load, clock = offered.load, machine.clock.name
    common = conditions_of(machine.deployment, load=offered.words, lengths=lengths_of(load), estimator=clock)
    return replace(common, policy="; ".join(words_of(machine, policies)), workload=load.title, seeds=tuple(seeds))


def words_of(machine: Machine, policies: Sequence[Policy]) -> tuple[str, ...]:
    """What serves the rows of each policy: its settings, and how it speculates."""
    return tuple(describe(machine.policy(each)) for each in policies)
