"""One account of all workers of a run, and of each host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from servewise.measure.crew.clock_offset import HostClock
from servewise.measure.crew.member import Member
from servewise.measure.crew.seat import Host
from servewise.measure.sending import HostShare, Sending


def muster(members: Sequence[Member], clocks: Mapping[Host, HostClock]) -> Sending:
    """What ``members`` said of their shares, put together; ``most_open`` is the sum of each one's own most.

    ``clocks`` of the hosts that have one of their own.
    """
    sendings = [member.done.sending for member in members if member.done]
    hosts = dict.fromkeys(member.host for member in members)
    shares = [_share(host, clocks.get(host), [each for each in members if each.host is host]) for host in hosts]
    return Sending(
        lateness_s=tuple(each for sending in sendings for each in sending.lateness_s),
        stalls_s=tuple(each for sending in sendings for each in sending.stalls_s),
        read_lag_s=tuple(each for sending in sendings for each in sending.read_lag_s),
        merged=sum(sending.merged for sending in sendings),
        merged_s=tuple(each for sending in sendings for each in sending.merged_s),
        cpu_s=sum(sending.cpu_s for sending in sendings),
        wall_s=max((sending.wall_s for sending in sendings), default=0.0),
        workers=len(sendings),
        most_open=sum(sending.most_open for sending in sendings),
        notes=tuple(note for sending in sendings for note in sending.notes),
        hosts=tuple(shares),
    )


def _share(host: Host, clock: HostClock | None, members: Sequence[Member]) -> HostShare:
    return HostShare(
        host=host.name,
        workers=len(members),
        requests=sum(each.requests for each in members),
        completed=sum(each.completed for each in members),
        lost=sum(each.lost for each in members),
        end="; ".join(dict.fromkeys(each.end for each in members if each.end)),
        offset_s=clock.before.offset_s if clock else None,
        offset_bound_s=clock.before.bound_s if clock else None,
        drift_s=clock.drift_s if clock else None,
        drift_bound_s=clock.drift_bound_s if clock else None,
        clock_bound_s=clock.bound_s if clock else 0.0,
        pings=clock.before.pings if clock else 0,
    )
