"""Prefix hash: prompts that begin alike go to one replica, by hashing alone."""

from __future__ import annotations

from collections.abc import Sequence
from math import log

from servewise.batching.positive import positive
from servewise.batching.sequence import Sequence as Tokens
from servewise.simulate.fleet.routers.router import Choice, Forgetful

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15  # 2^64 over the golden ratio


class PrefixHash(Forgetful):
    """Rendezvous hashing of a prompt's first ``prefix_blocks`` blocks: of all replicas the one that draws the best lot.

    Thaler and Ravishankar 1998 (IEEE/ACM Transactions on Networking 6(1)): a replica that goes leaves its prompts to
    the others and no other prompt moves. Each draws -ln(u) / weight with u from (prefix, replica), the least wins, so
    that shares are as the weights. Gateways that hash a prefix or a session's header do so: Envoy's ring hash, KubeAI's
    PrefixHash (which bounds the loads; this looks at none). Prompts without hashes go by their number.
    """

    name = "prefix-hash"
    heeds_state = False

    def __init__(self, prefix_blocks: int = 2) -> None:
        positive("prefix_blocks", prefix_blocks)
        self._blocks = prefix_blocks

    def choose(self, request: Tokens, up: Sequence[Choice]) -> int:
        """Whoever draws the best lot."""
        hashes = request.block_hashes[: self._blocks]
        key = hashes[-1] * 2 + 1 if hashes else request.serial * 2
        return min((self._lot(key, each), place) for place, each in enumerate(up))[1]

    @staticmethod
    def _lot(key: int, replica: Choice) -> float:
        drawn = _mixed((_mixed(key) + replica.number * GOLDEN) & MASK)
        return -log((drawn + 0.5) / 2.0**64) / replica.weight


def _mixed(value: int) -> int:
    """SplitMix64's finaliser (Steele et al. 2014): 64 bits of which each hangs on all."""
    value = (value + GOLDEN) & MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & MASK
    return value ^ (value >> 31)
