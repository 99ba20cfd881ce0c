"""All that a server takes beside its policy: a deployment, its clock, its KV pool, who drafts."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

from servewise.ask.numbers import whole
from servewise.ask.serving import Door, Load, capacity_for_serving, longest_context, shapes_of
from servewise.ask.speculating import Speculating, SpeculationOptions, drafting_of
from servewise.batching.policies import Policy
from servewise.caveats import Caveat
from servewise.deployment.capacity import KvCapacity
from servewise.deployment.deployment import Deployment
from servewise.errors import InputError
from servewise.plan.bracket import bracket
from servewise.plan.clock import clock_for
from servewise.plan.server import Server
from servewise.simulate.unit_step import UnitStep
from servewise.steptime.estimator import Estimator

PEEKED = 5_000  # requests whose mean lengths rank the clocks


@dataclass(frozen=True, slots=True)
class Pool:
    """A KV pool: what the memory holds, or ``given`` blocks, as the engine's log tells them."""

    capacity: KvCapacity
    given: int | None = None

    def blocks(self, drafting: Speculating | None) -> int:
        """Its blocks; of a computed one, those that the draft leaves."""
        if self.given is not None:
            return self.given
        return self.capacity.blocks if drafting is None else drafting.blocks(self.capacity)

    @property
    def caveats(self) -> tuple[Caveat, ...]:
        """What a reader must know of a pool that was given."""
        if self.given is None:
            return ()
        of, computed = self.capacity.block_tokens, self.capacity.blocks
        message = f"the KV pool is {self.given:,} blocks of {of} tokens as given; {computed:,} are computed"
        return (Caveat("given-pool", message, "leave --kv-blocks out for the computed one"),)


def staged_caveats(deployment: Deployment) -> tuple[Caveat, ...]:
    """What a reader must know of figures over pipeline stages."""
    if deployment.parallelism.pipeline == 1:
        return ()
    message = (
        "pipeline stages: of 30 published runs of a 70B under TensorRT-LLM throughput was 6% off over two stages, 13% "
        "over four and 32% too high over eight, by kernels alone: the host's time for each batch shows in short stages"
    )
    cure = "--estimator served (7-10% off there); judge --pp against --tp by a measurement"
    return (Caveat("pipeline-lanes", message, cure),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """``deployment``, timed by ``clock`` (which ``estimator`` names), with its KV ``pool``; ``drafting`` None: nobody
    drafts. ``load`` is what will come to it."""

    deployment: Deployment
    estimator: str | None
    clock: Estimator
    pool: Pool
    load: Load
    drafting: Speculating | None = None

    def policy(self, policy: Policy) -> Policy:
        """``policy`` as it runs here: speculating, where anybody drafts; InputError for one that cannot."""
        return policy if self.drafting is None else self.drafting.policy(policy)

    def server(self, policy: Policy) -> Server:
        """A server under ``policy``."""
        self.policy(policy)  # refused where it does not speculate
        return Server(
            policy=policy,
            estimator=self.clock,
            blocks=self.pool.blocks(self.drafting),
            block_tokens=self.pool.capacity.block_tokens,
            hash_block_tokens=self.load.hash_block_tokens,
            deployment=self.deployment,
            speculation=None if self.drafting is None else self.drafting.speculation,
        )

    def by_clock(self, server: Server, seed: int) -> tuple[Server, ...]:
        """``server`` by its nominal clock, and by the slow and the fast one where the coefficients have a spread."""
        door = Door(shapes_of(self.load, seed), longest_context(self.deployment))
        shapes = list(islice(door, PEEKED))
        if not shapes:
            what = "has no request that the model's context holds"
            raise InputError(what, where=self.load.title, hint="see --max-context")
        found = bracket(self.deployment, self.estimator, server, shapes, seed)
        return (server,) if found is None else (server, server.timed_by(found.slow), server.timed_by(found.fast))

    @property
    def caveats(self) -> tuple[Caveat, ...]:
        """The clock's and the speculation's."""
        return self.clock.caveats + (() if self.drafting is None else self.drafting.caveats)


def machine_of(
    deployment: Deployment,
    estimator: str | None,
    load: Load,
    drafts: SpeculationOptions,
    *,
    kv_blocks: int | None = None,
    unit_step: bool = False,
) -> Machine:
    """``deployment`` ready for policies; ``unit_step``: each of its steps takes 1 s, whatever ``estimator`` says.

    Raises InputError for speculation that cannot be, for what does not fit, and for a pool without blocks.
    """
    clock = UnitStep() if unit_step else clock_for(deployment, estimator)
    drafting = drafting_of(deployment, clock, drafts, estimator)
    pool = Pool(capacity_for_serving(deployment), None if kv_blocks is None else whole(kv_blocks, "kv_blocks"))
    named = "unit" if unit_step else estimator
    return Machine(deployment=deployment, estimator=named, clock=clock, pool=pool, load=load, drafting=drafting)
