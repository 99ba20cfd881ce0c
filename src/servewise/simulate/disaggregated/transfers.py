"""KV caches on their way from prefill servers to decode servers: links are shared, so transfers queue."""

from __future__ import annotations

from dataclasses import dataclass

from servewise.batching.positive import positive
from servewise.steptime.link import LinkTime


@dataclass(frozen=True, slots=True)
class Moved:
    """All transfers of a run: how many, their bytes, the seconds that links were busy and that transfers waited."""

    count: int = 0
    size_bytes: float = 0.0
    busy_s: float = 0.0
    waited_s: float = 0.0


class Transfers:
    """Each server has one ``link``, in which one transfer runs at a time, in the order in which prefills end.

        begins = max(ready, link of the sender free, link of the receiver free)
        frees  = max(begins + bytes / rate, prefill end + bytes / layers / rate)
        there  = frees + latency

    Without overlap (``layers`` 1) a transfer is ready when the prefill has ended. With it a layer's KV leaves while
    later layers are computed: it is ready once the first layer is done, which is taken to be one of ``layers`` equal
    parts of the time in prefill, and the last layer's part follows the end (Patel et al. 2024, Splitwise, section 4.2;
    Mooncake, section 5.2). Left out: two transfers may share a link's rate, which changes their order, not its use.
    """

    def __init__(self, link: LinkTime, layers: int = 1) -> None:
        positive("the number of layers", layers)
        self._link, self._layers = link, layers
        self._free_s: dict[int, float] = {}
        self.moved = Moved()

    def send(self, sender: int, receiver: int, size_bytes: float, ended_s: float, prefill_s: float) -> float:
        """When the KV of a prompt is there [s], whose prefill took ``prefill_s`` and ended at ``ended_s``."""
        free, rate, layers = self._free_s, self._link.bytes_per_s, self._layers
        ready_s = ended_s - prefill_s * (1.0 - 1.0 / layers)
        begins_s = max(ready_s, free.get(sender, 0.0), free.get(receiver, 0.0))
        frees_s = max(begins_s + size_bytes / rate, ended_s + size_bytes / layers / rate)
        free[sender] = free[receiver] = frees_s
        before = self.moved
        self.moved = Moved(
            before.count + 1,
            before.size_bytes + size_bytes,
            before.busy_s + size_bytes / rate,
            before.waited_s + begins_s - ready_s,
        )
        return frees_s + self._link.latency_s
