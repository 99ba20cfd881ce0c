"""What a sender tells of itself beside the exchanges: the client's own error."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class HostShare:
    """What one host sent of a run, and how its clock compares with the run's.

    ``requests`` that it began, ``completed`` and ``lost`` ones among them; ``end`` says how it was lost, empty where it
    was not. ``offset_s``: its clock minus the run's before the run, true within ``offset_bound_s`` (half of the
    shortest of ``pings`` round trips); ``drift_s``: by how much that had moved after it. None: the clock is the run's
    own, or it was not known any more. ``clock_bound_s``: how far its times may be off beside those of other hosts;
    TTFT, TPOT and all other durations are differences on one clock, which it does not touch.
    """

    host: str
    workers: int
    requests: int = 0
    completed: int = 0
    lost: int = 0
    end: str = ""
    offset_s: float | None = None
    offset_bound_s: float | None = None
    drift_s: float | None = None
    drift_bound_s: float | None = None
    clock_bound_s: float = 0.0
    pings: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sending:
    """How a client kept up over a run. All in seconds.

    ``lateness_s``: sent - scheduled, of every ask that had a time of its own (open loop, think time), in order of
    sending. ``stalls_s``: every time that the loop did not look at its sockets for over a millisecond. ``read_lag_s``:
    for reads that the kernel stamped, how long data lay before it was read (a bounded sample). ``cpu_s``: processor
    time of the senders, ``wall_s`` the run's length, ``workers`` the number of processes. ``most_open``: the most
    requests that were under way at once. ``merged_s``: for each output event that was read together with a later one
    (its own stamp is lost then, and it has the later one's), the most by which it can have come earlier (a bounded
    sample); ``merged`` is their number. A server that writes several events at once has them too. ``hosts``: where
    there were worker processes, which machines they were on.
    """

    lateness_s: tuple[float, ...] = ()
    stalls_s: tuple[float, ...] = ()
    read_lag_s: tuple[float, ...] = ()
    cpu_s: float = 0.0
    wall_s: float = 0.0
    workers: int = 1
    most_open: int = 0
    merged: int = 0
    merged_s: tuple[float, ...] = ()
    notes: tuple[str, ...] = field(default=())
    hosts: tuple[HostShare, ...] = field(default=())
