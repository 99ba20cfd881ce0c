"""What one row of a fleet's answer runs: replicas behind a router, or a pool for prompts and one for answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from random import Random

from servewise.batching.positive import positive
from servewise.errors import InputError, UnknownName
from servewise.simulate.arrivals import Arrivals
from servewise.simulate.disaggregated.pools import simulate_pools
from servewise.simulate.disaggregated.transfers import Moved
from servewise.simulate.fleet.autoscale import Autoscale
from servewise.simulate.fleet.fleet import FleetRun, simulate_fleet
from servewise.simulate.fleet.kind import ReplicaKind
from servewise.simulate.fleet.outage import Outage
from servewise.simulate.fleet.routers.at_random import AtRandom
from servewise.simulate.fleet.routers.least_loaded import LeastLoaded
from servewise.simulate.fleet.routers.power_of_two import PowerOfTwo
from servewise.simulate.fleet.routers.prefix_aware import Balance, PrefixAware
from servewise.simulate.fleet.routers.prefix_hash import PrefixHash
from servewise.simulate.fleet.routers.round_robin import RoundRobin
from servewise.simulate.fleet.routers.router import Router
from servewise.simulate.fleet.routers.session import SessionSticky
from servewise.simulate.recorder import Sink
from servewise.steptime.link import LinkTime

DRAWING = ("power-of-two", "random")  # routers that draw
_SGLANG = Balance()
ROUTERS = ("round-robin", "least-loaded", "power-of-two", "random", "prefix-aware", "session-sticky", "prefix-hash")


@dataclass(frozen=True, slots=True)
class RouterSettings:
    """Of prefix-aware: SGLang's three thresholds; of least-loaded: how many running requests a waiting one counts.

    Of prefix-hash: how many of a prompt's leading blocks are hashed.
    """

    cache_threshold: float = _SGLANG.cache_threshold
    balance_abs_threshold: int = _SGLANG.balance_abs_threshold
    balance_rel_threshold: float = _SGLANG.balance_rel_threshold
    waiting_weight: float = 1.0
    prefix_blocks: int = 2

    def __post_init__(self) -> None:
        """Refuse what no router could take."""
        self.balance  # noqa: B018 - it checks itself
        positive("waiting_weight", self.waiting_weight)
        positive("prefix_blocks", self.prefix_blocks)

    @property
    def balance(self) -> Balance:
        """The thresholds as the router takes them."""
        return Balance(
            cache_threshold=self.cache_threshold,
            balance_abs_threshold=self.balance_abs_threshold,
            balance_rel_threshold=self.balance_rel_threshold,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """``router`` by name; ``split`` None: every replica does all; else (prefill servers, decode servers).

    ``between`` are the least and the most replicas of an autoscaled fleet.
    """

    router: str
    replicas: int
    split: tuple[int, int] | None = None
    between: tuple[int, int] | None = None

    @property
    def title(self) -> str:
        """``4 mixed``, ``1 to 8 mixed`` or ``2P2D``."""
        if self.split is not None:
            return f"{self.split[0]}P{self.split[1]}D"
        return f"{self.replicas} mixed" if self.between is None else f"{self.between[0]} to {self.between[1]} mixed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """What all rows of an answer share beside their replicas.

    ``link``, ``kv_bytes`` (of a prompt) and ``layers`` are of the transfers between pools; ``decode_router`` is the
    second pool's.
    """

    settings: RouterSettings
    outages: tuple[Outage, ...] = ()
    on_failure: str = "retry"
    autoscale: Autoscale | None = None
    lockstep: bool = False
    decode_router: str = "least-loaded"
    link: LinkTime | None = None
    kv_bytes: Callable[[int], float] | None = None
    layers: int = 1

    def later(self, by_s: float) -> Behaviour:
        """The same with failures ``by_s`` later: they are told from when figures count."""
        moved = tuple(replace(each, at_s=each.at_s + by_s, back_s=each.back_s + by_s) for each in self.outages)
        return replace(self, outages=moved) if by_s else self


def router_named(name: str, settings: RouterSettings, kind: ReplicaKind, seed: int) -> Router:
    """The router of that name with nothing learnt yet; UnknownName otherwise."""
    makers: dict[str, Callable[[], Router]] = {
        "round-robin": RoundRobin,
        "least-loaded": lambda: LeastLoaded(settings.waiting_weight),
        "power-of-two": lambda: PowerOfTwo(Random(f"{name} {seed}")),
        "random": lambda: AtRandom(Random(f"{name} {seed}")),
        "prefix-aware": lambda: PrefixAware(kind.hash_block_tokens, kind.kept_hashes, settings.balance),
        "session-sticky": lambda: SessionSticky(kind.hash_block_tokens),
        "prefix-hash": lambda: PrefixHash(settings.prefix_blocks),
    }
    if name not in makers:
        raise UnknownName("router", name, ROUTERS, where="router", hint=f"one of {', '.join(ROUTERS)}")
    return makers[name]()


def layouts_of(
    router: str | Iterable[str], kinds: Sequence[ReplicaKind], splits: Sequence[tuple[int, int]], how: Behaviour
) -> tuple[Layout, ...]:
    """Each ``router`` before the replicas ``kinds``, then before each of ``splits``; UnknownName for no router."""
    names = tuple(dict.fromkeys(name.strip() for name in ([router] if isinstance(router, str) else router)))
    for name in (*names, how.decode_router):
        router_named(name, how.settings, kinds[0], 0)
    if not names:
        raise InputError("none is named", where="router")
    between = None if how.autoscale is None else (how.autoscale.least, how.autoscale.most)
    mixed = [Layout(router=name, replicas=len(kinds), between=between) for name in names]
    return (*mixed, *(Layout(router=name, replicas=len(kinds), split=split) for split in splits for name in names))


def run_layout(
    layout: Layout,
    kinds: tuple[ReplicaKind, ...],
    source: Arrivals,
    how: Behaviour,
    seed: int,
    *,
    into: Sink | None = None,
    progress: Callable[[int], None] | None = None,
) -> tuple[FleetRun, Moved | None]:
    """Run the requests of ``source``; the second is what moved between pools.

    ``into`` takes the records as they are made; pools keep them in memory.
    """
    router = router_named(layout.router, how.settings, kinds[0], seed)
    if layout.split is None:
        run = simulate_fleet(
            source,
            kinds,
            router,
            outages=how.outages,
            on_failure=how.on_failure,
            autoscale=how.autoscale,
            lockstep=how.lockstep,
            into=into,
            progress=progress,
        )
        return run, None
    prefills = layout.split[0]
    assert how.link is not None
    assert how.kv_bytes is not None
    pools = simulate_pools(
        source,
        kinds[:prefills],
        kinds[prefills:],
        (router, router_named(how.decode_router, how.settings, kinds[0], seed)),
        link=how.link,
        kv_bytes=how.kv_bytes,
        layers=how.layers,
    )
    return pools.fleet, pools.moved
