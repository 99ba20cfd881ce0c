"""What is measured: each server with each kind of weights, with a shared prefix, with and without batching."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from servewise.errors import InputError, UnknownName

Part = Literal["16-bit", "quantised", "prefix", "batching"]
PARTS: tuple[Part, ...] = ("16-bit", "quantised", "prefix", "batching")
SERVERS = {"llamacpp": "llama.cpp", "own": "servewise", "vllm": "vLLM"}
QUANTISED = {"llamacpp": ("q8_0", "q4_0"), "own": (), "vllm": ("int8",)}
BATCHING = {"llamacpp": ("continuous", "none"), "own": ("continuous", "dynamic", "static"), "vllm": ()}
BATCH = 8  # streams of the comparison of batching policies
WITHOUT_QUANTISED = {"own": "`servewise serve` computes in 16 bits at the least"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One server process and what is measured on it. ``batching``: ``none`` is llama.cpp without continuous batching.

    ``streams`` are the loads; ``mixed``: answers of mixed lengths, where policies differ.
    """

    part: Part
    server: str
    weights: str
    streams: tuple[int, ...]
    prefix_cache: bool = False
    shared: bool = False
    batching: str = "continuous"
    mixed: bool = False

    @property
    def name(self) -> str:
        """For folders: ``llamacpp-bf16``, ``vllm-bf16-prefix-cached``."""
        words = [self.server, self.weights]
        if self.shared:
            words += ["prefix", "cached" if self.prefix_cache else "uncached"]
        if self.mixed:
            words += ["batching", self.batching]
        return "-".join(words)

    @property
    def policy(self) -> str:
        """For conditions."""
        batching = "no continuous batching" if self.batching == "none" else f"{self.batching} batching"
        return f"{batching}, prefix cache {'on' if self.prefix_cache else 'off'}"


def variants(
    servers: Sequence[str], parts: Sequence[str], streams: Sequence[int], prefix_streams: Sequence[int]
) -> list[Variant]:
    """Every variant, server by server, in the order of the study; the shared prefix at ``prefix_streams``."""
    return [
        each for server in servers for each in _of(server, tuple(streams), tuple(prefix_streams)) if each.part in parts
    ]


def _of(server: str, streams: tuple[int, ...], prefix_streams: tuple[int, ...]) -> Iterator[Variant]:
    yield Variant(part="16-bit", server=server, weights="bf16", streams=streams)
    for weights in QUANTISED[server]:
        yield Variant(part="quantised", server=server, weights=weights, streams=streams)
    for cached in (False, True):
        yield Variant(
            part="prefix", server=server, weights="bf16", streams=prefix_streams, shared=True, prefix_cache=cached
        )
    for batching in BATCHING[server]:
        yield Variant(part="batching", server=server, weights="bf16", streams=(BATCH,), batching=batching, mixed=True)


def names_in(given: Sequence[str], known: Sequence[str], where: str) -> tuple[str, ...]:
    """The given names, each once and each known; at least one."""
    for name in given:
        if name not in known:
            raise UnknownName(where.rstrip("s"), name[:40], known, where=where, hint=f"of {', '.join(known)}")
    if not given:
        raise InputError("at least one is needed", where=where, hint=f"of {', '.join(known)}")
    return tuple(dict.fromkeys(given))
