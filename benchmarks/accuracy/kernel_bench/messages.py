"""Messages between accelerators."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache

from benchmarks.accuracy.kernel_bench.rows import Judged, Kernel, bucket
from servewise.deployment.deployment import Deployment, Parallelism
from servewise.hardware.catalogue import load_accelerator
from servewise.modelspec.load import load_model
from servewise.precision import FORMATS
from servewise.steptime.coefficients import Coefficients
from servewise.steptime.link import link_time
from servewise.steptime.lookup import coefficients_for

BYTES = (2**17, 2**23)
# Where a pair is joined by a bridge as fast as the switch of a larger node, two ranks take the switch's times.
NODES = {
    ("a100_dgx", 0): "a100-80gb",
    ("h100_dgx", 0): "h100-sxm",
    ("a100_pairwise_nvlink", 2): "a100-80gb",
    ("a100_pairwise_nvlink", 4): "a100-80gb-pcie",
    ("h100_pairwise_nvlink", 2): "h100-sxm",
    ("h100_pairwise_nvlink", 4): "h100-pcie",
}
LINKS = {
    ("a100_dgx", True): "a100-80gb",
    ("h100_dgx", True): "h100-sxm",
    ("h100_dgx", False): "InfiniBand NDR",
    ("a100_pairwise_nvlink", True): "a100-80gb",
}


def judge_messages(rows: Iterable[Kernel]) -> Iterator[Judged]:
    """All-reduces within a node, sends within a node and over a network whose kind is known."""
    for each in rows:
        inside = each.per_node == each.devices
        size = bucket(each.bytes, BYTES) + " bytes"
        if each.kind == "all_reduce" and inside:
            name = NODES.get((each.card, 0)) or NODES[each.card, each.devices]
            predicted = _coefficients(name).all_reduce_s(each.devices, each.bytes)
            yield Judged(f"all-reduce of {each.devices}", each.card, size, each.seconds, predicted)
        elif each.kind == "send_recv" and (each.card, inside) in LINKS:
            where = "within a node" if inside else "between nodes"
            predicted = link_time(LINKS[each.card, inside]).seconds(each.bytes)
            yield Judged(f"send, {where}", each.card, size, each.seconds, predicted)


def left_out(each: Kernel) -> str | None:
    """Why a timed kernel has no prediction; None where it has one (or lies in the sum of a layer's small kernels)."""
    inside = each.per_node == each.devices
    if each.kind == "layer_op:emb":
        return "embedding look-up: a token's row, counted as bytes in a step"
    if each.kind == "all_reduce" and not inside:
        return "all-reduce between nodes: no coefficient"
    if each.kind == "send_recv" and each.card == "h100_pairwise_nvlink":
        return "the same file as a100_pairwise_nvlink"
    if each.kind == "send_recv" and (each.card, inside) not in LINKS:
        return "send over a link whose kind is not named (host memory, unnamed network)"
    return None


@cache
def _coefficients(accelerator: str) -> Coefficients:
    half = FORMATS["bf16"]
    where = Deployment(
        model=load_model("llama-3-8b"),
        accelerator=load_accelerator(accelerator),
        kv=half,
        activations=half,
        engine="vllm",
        parallelism=Parallelism(tensor=2),
    )
    return coefficients_for(where).coefficients
