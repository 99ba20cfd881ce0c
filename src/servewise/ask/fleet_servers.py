"""From a fleet's options to its replicas by each clock, and to how they behave."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice

from servewise.ask.fleet_layout import Behaviour, RouterSettings
from servewise.ask.fleet_options import autoscale_of, failures_of, link_of
from servewise.ask.serving import (
    Door,
    Load,
    PolicyOptions,
    capacity_for_serving,
    longest_context,
    policies_named,
    shapes_of,
)
from servewise.ask.settings import settings_of
from servewise.deployment.deployment import Deployment
from servewise.errors import InputError
from servewise.hardware.accelerator import Accelerator
from servewise.modelspec.kv import kv_bytes
from servewise.plan.bracket import bracket
from servewise.plan.clock import clock_for
from servewise.plan.server import Server
from servewise.pricing.price import accelerator_price, stated_price
from servewise.simulate.fleet.autoscale import Autoscale
from servewise.simulate.fleet.kind import ReplicaKind
from servewise.simulate.fleet.outage import RULES, Outage
from servewise.steptime.link import LinkTime

DEFAULT_LINK = "InfiniBand NDR"
PEEKED = 5_000  # requests whose mean lengths rank the clocks


@dataclass(frozen=True, slots=True, kw_only=True)
class Servers:
    """``count`` replicas of ``deployment`` by each clock: nominal, or nominal, slow and fast."""

    deployment: Deployment
    count: int
    kinds: tuple[ReplicaKind, ...]
    usd_per_hour: float | None


def one_replica(deployment: Deployment) -> Deployment:
    """One replica of it: data parallelism is what the fleet is."""
    split = deployment.parallelism
    if split.data > 1:
        what = f"{split.accelerators} accelerators hold {split.data} replicas"
        raise InputError(what, where="count", hint="say how many with replicas, and --tp and --pp for one of them")
    return deployment


def longest_of(deployments: Sequence[Deployment]) -> int | None:
    """The longest context that every replica takes."""
    known = [found for each in deployments if (found := longest_context(each)) is not None]
    return min(known, default=None)


def servers_of(
    deployment: Deployment,
    count: int,
    weight: float,
    policy: str,
    choices: PolicyOptions,
    load: Load,
    estimator: str | None,
    seed: int,
    price: float | None,
) -> Servers:
    """``count`` replicas of ``deployment`` by each clock of ``estimator``; ``price`` [$ per accelerator-hour]."""
    capacity = capacity_for_serving(deployment)
    server = Server(
        policy=policies_named([policy], deployment, choices)[0],
        estimator=clock_for(deployment, estimator),
        blocks=capacity.blocks,
        block_tokens=capacity.block_tokens,
        hash_block_tokens=load.hash_block_tokens,
        deployment=deployment,
    )
    shapes = list(islice(Door(shapes_of(load, seed), longest_context(deployment)), PEEKED))
    if not shapes:
        raise InputError("has no request that the model's context holds", where=load.title, hint="see --max-context")
    spread = bracket(deployment, estimator, server, shapes, seed)
    clocks = (server.estimator,) if spread is None else (server.estimator, spread.slow, spread.fast)
    kinds = tuple(
        ReplicaKind(
            policy=server.policy,
            estimator=clock,
            blocks=server.blocks,
            block_tokens=server.block_tokens,
            hash_block_tokens=server.hash_block_tokens,
            deployment=deployment,
            weight=weight,
        )
        for clock in clocks
    )
    known = stated_price(price, "price") if price is not None else accelerator_price(deployment.accelerator.name)
    return Servers(
        deployment=deployment, count=count, kinds=kinds, usd_per_hour=None if known is None else known.usd_per_hour
    )


def by_clock(pools: Sequence[Servers]) -> tuple[tuple[ReplicaKind, ...], ...]:
    """All replicas by each clock that every pool has."""
    clocks = min(len(each.kinds) for each in pools)
    return tuple(tuple(each.kinds[clock] for each in pools for _ in range(each.count)) for clock in range(clocks))


def behaviour_of(
    deployment: Deployment,
    router_settings: Mapping[str, object] | None,
    fail: str | Iterable[str | Outage],
    on_failure: str,
    autoscale: str | Autoscale | None,
    decode_router: str,
    link: str | Accelerator | LinkTime | None,
    *,
    lockstep: bool,
) -> Behaviour:
    """How the fleet behaves, from options as people give them; KV moves in one piece. InputError for what cannot be."""
    if on_failure not in RULES:
        raise InputError(
            f"{on_failure!r} is no rule for failures", where="on_failure", hint=f"one of {', '.join(RULES)}"
        )
    split = deployment.parallelism
    over = link_of(DEFAULT_LINK if link is None else link)
    ranks = split.tensor * split.pipeline
    return Behaviour(
        settings=RouterSettings(**settings_of(RouterSettings, router_settings or {})),
        outages=failures_of(fail),
        on_failure=on_failure,
        autoscale=autoscale_of(autoscale),
        lockstep=lockstep,
        decode_router=decode_router,
        link=replace(over, bytes_per_s=over.bytes_per_s * ranks),
        kv_bytes=partial(_kv_bytes_of_all_ranks, deployment),
    )


def _kv_bytes_of_all_ranks(deployment: Deployment, tokens: int) -> float:
    """What the ranks of one server send of a prompt of ``tokens`` tokens, each its own shard [bytes]."""
    split = deployment.parallelism
    one = kv_bytes(deployment.model, tokens, deployment.kv, tensor=split.tensor)
    return one * split.tensor / split.decode_context
