"""A Ray cluster of two nodes on this machine, as a process: says its address, ends a node when told, and itself at EOF.

It stands on loopback alone; whoever starts it closes its standard input to end it.
"""

from __future__ import annotations

import os
import sys
from typing import Any

# Ray takes this machine's outer address even for 127.0.0.1, unless it thinks that the system cannot do clusters.
ALONE = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
os.environ |= ALONE | {"RAY_USAGE_STATS_ENABLED": "0", "RAY_raylet_start_wait_time_s": "120"}

STORE_BYTES = 80_000_000  # the least that Ray takes
NODE: dict[str, Any] = {"num_cpus": 1, "node_ip_address": "127.0.0.1", "object_store_memory": STORE_BYTES}


def main() -> None:
    """Serve until standard input ends; ``lose`` ends the second node as a power cut would."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={**NODE, "include_dashboard": False})
    try:
        second = cluster.add_node(**NODE)
        cluster.wait_for_nodes()
        _say(cluster.address)
        for line in sys.stdin:
            if line == "lose\n":
                cluster.remove_node(second, allow_graceful=False)
                _say("lost")
    finally:
        cluster.shutdown()  # type: ignore[no-untyped-call]


def _say(word: str) -> None:
    print(word, flush=True)


if __name__ == "__main__":
    main()
