"""Run requests through a pool of prefill servers and a pool of decode servers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from servewise.batching.policies import Dynamic, Static
from servewise.errors import InputError
from servewise.records.columns import RequestColumns
from servewise.simulate.arrivals import Arrivals, OpenArrivals
from servewise.simulate.disaggregated.core import DisaggregatedCore
from servewise.simulate.disaggregated.parts import PromptRecorder
from servewise.simulate.disaggregated.transfers import Moved, Transfers
from servewise.simulate.fleet.fleet import FleetRun, run_of
from servewise.simulate.fleet.kind import ReplicaKind
from servewise.simulate.fleet.member import UP, Member
from servewise.simulate.fleet.roster import Roster
from servewise.simulate.fleet.routers.router import Router
from servewise.simulate.recorder import Recorder
from servewise.simulate.replica import Watch
from servewise.steptime.link import LinkTime
from servewise.workload.request import Request


@dataclass(frozen=True, slots=True)
class PoolsRun:
    """What a run wrote; replicas below ``prefills`` are the prefill servers. ``moved`` sums up the transfers."""

    fleet: FleetRun
    prefills: int
    moved: Moved


def simulate_pools(
    requests: Iterable[Request] | Arrivals,
    prefill: Sequence[ReplicaKind],
    decode: Sequence[ReplicaKind],
    routers: tuple[Router, Router],
    *,
    link: LinkTime,
    kv_bytes: Callable[[int], float],
    layers: int = 1,
    until: Callable[[RequestColumns], bool] | None = None,
    progress: Callable[[int], None] | None = None,
    longest_jump: int | None = None,
    watch: Watch | None = None,
) -> PoolsRun:
    """Run ``requests``: prompts by the first of ``routers`` to ``prefill``, then answers by the second to ``decode``.

    ``link`` is each server's own to the other pool; ``kv_bytes`` the bytes of a prompt of so many tokens, all of which
    move. ``layers`` above 1: they move layer by layer while the prompt is computed (see ``Transfers``). TTFT counts
    the wait and the prefill at the first server, the transfer, and the wait at the second: the client gets the first
    token when it is admitted there. The rest as in ``simulate``.

    Left out: a prefill server's blocks are free at the end of the prefill, not of the transfer.

    Raises InputError for an empty pool and for policies that form whole batches.
    """
    _check(prefill, decode)
    source = OpenArrivals(requests) if isinstance(requests, Iterable) else requests
    recorder = Recorder()
    by_prompt = PromptRecorder(recorder)

    def made(number: int, kind: ReplicaKind, now_s: float) -> Member:
        writes = by_prompt if number < len(prefill) else recorder
        return Member(number, kind, writes, longest_jump=longest_jump, watch=watch, ordered_s=now_s)

    roster = Roster(made)
    for kind in (*prefill, *decode):
        roster.become(roster.order(kind, 0.0), UP, 0.0)
    transfers = Transfers(link, layers)
    core = DisaggregatedCore(
        source, roster, routers, recorder, prefills=len(prefill), transfers=transfers, kv_bytes=kv_bytes
    )
    core.run(until, progress)
    return PoolsRun(run_of(core, {}), len(prefill), transfers.moved)


def _check(prefill: Sequence[ReplicaKind], decode: Sequence[ReplicaKind]) -> None:
    if not prefill or not decode:
        raise InputError("each pool has at least one server", where="disaggregate", hint="e.g. 1P1D")
    for kind in (*prefill, *decode):
        if isinstance(kind.policy, Static | Dynamic):
            what = f"{kind.policy.name} batching runs a request from its prompt to its end on one server"
            raise InputError(what, where="policy", hint="a continuous policy")
