"""A Ray cluster of two nodes on this machine's loopback, as a program: `python two_nodes.py FOLDER`.

It prints a line of JSON when the cluster is up (``address``, ``client``: that of the client port, ``first`` and
``second``: the nodes' process ids, first the one that programs of this machine join and that must live) and ends it
when its input closes. One core a node; nothing leaves FOLDER.
"""

from __future__ import annotations

import importlib
import json
import os
import socket
import sys
import time
from typing import Any

SETTINGS = {
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # else nodes take this machine's outer address
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_AUTH_MODE": "disabled",
    "RAY_NUM_REDIS_GET_RETRIES": "60",  # times to look for the head, which is slow where a machine is busy
}
NODE = {"num_cpus": 1, "num_gpus": 0, "object_store_memory": 80 * 2**20, "include_log_monitor": False}


def main(folder: str) -> None:
    """Start, tell, wait, end."""
    os.environ |= {**SETTINGS, "RAY_TMPDIR": folder}
    import ray._private.node
    from ray.cluster_utils import Cluster

    clocked: Any = ray._private.node
    clocked.time = Patience()
    client = free_port()
    cluster: Any = Cluster(
        initialize_head=True, head_node_args={**NODE, "include_dashboard": False, "ray_client_server_port": client}
    )
    try:
        told = {"address": cluster.address, "client": f"ray://127.0.0.1:{client}"}
        nodes = (cluster.head_node, cluster.add_node(**NODE))
        mine = joined(cluster.address)
        for name, node in zip(
            ("first", "second"), sorted(nodes, key=lambda each: each.raylet_socket_name != mine), strict=True
        ):
            (raylet,) = node.all_processes["raylet"]
            told[name] = raylet.process.pid
        print(json.dumps(told), flush=True)
        sys.stdin.read()
    finally:
        cluster.shutdown()


def joined(address: str) -> str:
    """The socket of the node that a program here joins: Ray 2.40 takes either of two at one address, 2.60 the head."""
    ray: Any = importlib.import_module("ray")
    ray.init(address=address, log_to_driver=False, configure_logging=False)
    mine = ray.get_runtime_context().get_node_id()
    sockets = {each["NodeID"]: each["RayletSocketName"] for each in ray.nodes()}
    ray.shutdown()
    return str(sockets[mine])


class Patience:
    """Ray's clock while nodes start: it gives them 30 s, of which a busy machine makes five minutes."""

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)

    def monotonic(self) -> float:
        """A tenth as fast."""
        return time.monotonic() / 10


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.socket() as trial:
        trial.bind(("127.0.0.1", 0))
        return int(trial.getsockname()[1])


if __name__ == "__main__":
    main(sys.argv[1])
