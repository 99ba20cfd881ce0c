"""How a fleet behaves, from options as people give them: what happens to servers that do both prefill and decode, and
how the two are apart where they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from servewise.ask.fleet_layout import Behaviour, RouterSettings
from servewise.ask.fleet_options import Split, autoscale_of, failures_of, link_of, splits_of
from servewise.ask.settings import settings_of
from servewise.deployment.deployment import Deployment
from servewise.errors import InputError
from servewise.hardware.accelerator import Accelerator
from servewise.modelspec.kv import kv_bytes
from servewise.simulate.fleet.autoscale import Autoscale
from servewise.simulate.fleet.outage import RULES, Outage
from servewise.steptime.link import LinkTime

DEFAULT_LINK = "InfiniBand NDR"


@dataclass(frozen=True, slots=True, kw_only=True)
class Apart:
    """Prefill and decode on servers of their own, in each of ``splits`` (none: they are not apart).

    Answers are sent to decode servers by ``decode_router``; KV moves over ``link``, with ``overlap`` layer by layer.
    """

    splits: tuple[Split, ...] = ()
    decode_router: str = "least-loaded"
    link: LinkTime
    overlap: bool = False


def apart_of(
    disaggregate: str | Iterable[str | Split],
    replicas: int | None,
    *,
    decode_router: str,
    link: str | Accelerator | LinkTime | None,
    overlap: bool,
) -> Apart:
    """Servers apart as these options say; InputError for those that would be ignored, where no servers are apart."""
    splits = splits_of(disaggregate, replicas)
    given = {"link": link is not None, "overlap": overlap, "decode_router": decode_router != "least-loaded"}
    for name, asked in given.items():
        if asked and not splits:
            raise InputError("is of prefill and decode apart", where=name, hint="give --disaggregate, or leave it out")
    over = link_of(DEFAULT_LINK if link is None else link)
    return Apart(splits=splits, decode_router=decode_router, link=over, overlap=overlap)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixed:
    """What servers that do both go through: ``outages``, and what then becomes of requests; scaling; lockstep."""

    outages: tuple[Outage, ...] = ()
    on_failure: str = "retry"
    autoscale: Autoscale | None = None
    lockstep: bool = False


def mixed_of(
    fail: str | Iterable[str | Outage], on_failure: str, autoscale: str | Autoscale | None, *, lockstep: bool
) -> Mixed:
    """What these options say; InputError for a rule that is none, or without failures."""
    if on_failure not in RULES:
        what = f"{on_failure!r} is no rule for failures"
        raise InputError(what, where="on_failure", hint=f"one of {', '.join(RULES)}")
    outages = failures_of(fail)
    if not outages and on_failure != "retry":
        raise InputError("says what failures do, but none is given", where="on_failure", hint="give --fail too")
    scaled = autoscale_of(autoscale)
    return Mixed(outages=outages, on_failure=on_failure, autoscale=scaled, lockstep=lockstep)


def behaviour_of(
    deployment: Deployment, router_settings: Mapping[str, object] | None, mixed: Mixed, apart: Apart
) -> Behaviour:
    """How a fleet of replicas of ``deployment`` behaves."""
    ranks = deployment.parallelism.tensor * deployment.parallelism.pipeline
    return Behaviour(
        settings=RouterSettings(**settings_of(RouterSettings, router_settings or {})),
        outages=mixed.outages,
        on_failure=mixed.on_failure,
        autoscale=mixed.autoscale,
        lockstep=mixed.lockstep,
        decode_router=apart.decode_router,
        link=replace(apart.link, bytes_per_s=apart.link.bytes_per_s * ranks),
        kv_bytes=partial(_kv_bytes_of_all_ranks, deployment),
        layers=deployment.model.layer_count if apart.overlap else 1,
    )


def _kv_bytes_of_all_ranks(deployment: Deployment, tokens: int) -> float:
    """What the ranks of one server send of a prompt of ``tokens`` tokens, each its own shard [bytes]."""
    split = deployment.parallelism
    one = kv_bytes(deployment.model, tokens, deployment.kv, tensor=split.tensor)
    return one * split.tensor / split.decode_context
