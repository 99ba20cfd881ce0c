"""The physical coefficients of the calibrated roofline: efficiencies, launch costs, message costs."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


@dataclass(frozen=True, slots=True, kw_only=True)
class GemmCoefficients:
    """One matrix product takes ``launch_s`` + smooth maximum of memory and compute [s].

    memory = weight bytes / (bandwidth x ``weight_efficiency``) + ``activation_factor`` x activation bytes / bandwidth;
    compute = FLOPs / (peak x ``flop_efficiency``); the smooth maximum is (memory^p + compute^p)^(1/p) with p =
    ``sharpness`` >= 1 (1: they add; infinite: the larger). ``activation_factor`` holds what surrounds the product, such
    as quantising its input.
    """

    launch_s: float
    weight_efficiency: float
    flop_efficiency: float
    sharpness: float
    activation_factor: float

    def seconds(self, memory_s: float, activation_s: float, compute_s: float) -> float:
        """The time of a product from its weights', activations' and FLOPs' times at full rates [s]."""
        memory = memory_s / self.weight_efficiency + activation_s * self.activation_factor
        return self.launch_s + smooth_maximum(memory, compute_s / self.flop_efficiency, self.sharpness)


def smooth_maximum(one: float, other: float, sharpness: float) -> float:
    """(one^p + other^p)^(1/p), never below the larger of the two.

    >>> smooth_maximum(3.0, 4.0, 2.0)
    5.0
    """
    large, small = (one, other) if one > other else (other, one)
    if not small:
        return large
    return large * math.pow(1.0 + math.pow(small / large, sharpness), 1.0 / sharpness)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeAttention:
    """One decode attention kernel: max(``launch_s``, ``ramp_s`` + KV bytes / (bandwidth x ``kv_efficiency``)) [s].

    Small caches are read within the launch; ``ramp_s`` is the line's start, below ``launch_s`` where a cache on the
    chip helps (negative on L40S, whose L2 holds 96 MB).
    """

    launch_s: float
    ramp_s: float
    kv_efficiency: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionCoefficients:
    """Attention kernels of one layer. ``multi_head`` is for models whose query heads share no keys.

    Prefill: ``prefill_launch_s`` + FLOPs / (peak x ``flop_efficiency``) + ``activation_factor`` x bytes of queries and
    results / bandwidth + bytes of keys and values / (bandwidth x decode's ``kv_efficiency``).
    """

    decode: DecodeAttention
    multi_head: DecodeAttention
    prefill_launch_s: float
    flop_efficiency: float
    activation_factor: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallKernels:
    """Norms, rotary embedding, activation of one layer: ``layer_s`` + bytes / bandwidth.

    ``hidden_bytes`` a token and hidden value, ``width_bytes`` a token and feed-forward value on the rank.
    ``routed_layer_s`` is what a layer of routed experts takes beside its products: choosing experts, sorting tokens by
    them, activation, adding up. Median of fused mixture kernels timed at one token, less their products
    (benchmarks/data/kernel_bench/routed_experts.csv: H100, H200, B200, A100; 15 to 34 us).
    """

    layer_s: float
    hidden_bytes: float
    width_bytes: float
    routed_layer_s: float = 18e-6


class Knot(NamedTuple):
    """A message of ``bytes`` takes ``seconds``."""

    bytes: float
    seconds: float


@dataclass(frozen=True, slots=True)
class AllReduce:
    """The time of an all-reduce by message size: straight between knots on logarithmic axes.

    Below the first knot its time holds (latency), above the last one time grows with the bytes (bandwidth).
    """

    knots: tuple[Knot, ...]

    def seconds(self, size: float) -> float:
        """The time of a message of ``size`` bytes [s]."""
        knots = self.knots
        if size <= knots[0].bytes:
            return knots[0].seconds
        if size >= knots[-1].bytes:
            return knots[-1].seconds * size / knots[-1].bytes
        at = bisect_left(knots, (size, 0.0))
        low, high = knots[at - 1], knots[at]
        share = math.log(size / low.bytes) / math.log(high.bytes / low.bytes)
        return low.seconds * math.pow(high.seconds / low.seconds, share)

    def with_bandwidth(self, ratio: float) -> AllReduce:
        """The same latency on a link ``ratio`` times as fast."""
        latency = self.knots[0].seconds
        return AllReduce(tuple(Knot(size, latency + (each - latency) / ratio) for size, each in self.knots))

    def ring(self, ranks: int, latency_s: float) -> AllReduce:
        """This one of two ranks as a ring of ``ranks``: its own latency, and 2 (n - 1) / n of the bytes over a link."""
        times, latency = 2.0 * (ranks - 1) / ranks, self.knots[0].seconds
        return AllReduce(tuple(Knot(size, latency_s + (each - latency) * times) for size, each in self.knots))


@dataclass(frozen=True, slots=True, kw_only=True)
class TiledDecode:
    """How a kernel of tiles decodes beside prompts: for each head one query takes a tile of ``rows``.

    A tile runs over the sequence's keys, ``keys`` at a time, at the rate of prefill. Each sequence also gets as many
    tiles as the longest prompt chunk; those beyond its own end at once, after ``block_s`` [s] each.
    """

    rows: int
    keys: int
    block_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidRange:
    """Where the coefficients were fitted; each pair is lowest and highest."""

    decode_sequences: tuple[int, int]
    context_tokens: tuple[int, int]
    prefill_tokens: tuple[int, int]
    tensor: tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Coefficients:
    """All that the calibrated roofline needs beside a deployment. ``title`` names where they were measured.

    ``all_reduce`` is by number of ranks. ``step_overhead_s`` is the engine's own time between steps (scheduler,
    sampling, gaps between launches), which the kernels' times leave out. ``tiled`` is for engines that decode beside
    prompts in the prompts' kernel; None: in a kernel of its own. ``logit_bytes`` a logit that ranks gather.
    """

    title: str
    gemm: GemmCoefficients
    attention: AttentionCoefficients
    small: SmallKernels
    all_reduce: Mapping[int, AllReduce] = field(default_factory=dict)
    step_overhead_s: float = 0.0
    valid_range: ValidRange | None = None
    tiled: TiledDecode | None = None
    logit_bytes: float = 0.0

    def all_reduce_s(self, ranks: int, size: float) -> float:
        """The time of an all-reduce of ``size`` bytes over ``ranks`` ranks [s].

        Degrees that were not measured take the nearest one, its bandwidth part scaled by the 2 (n - 1) / n of a ring.
        """
        if ranks <= 1 or not self.all_reduce:
            return 0.0
        nearest = min(self.all_reduce, key=lambda each: (abs(math.log2(each / ranks)), each))
        ring = (1 - 1 / ranks) / (1 - 1 / nearest)
        return self.all_reduce[nearest].seconds(size) * max(1.0, ring)
