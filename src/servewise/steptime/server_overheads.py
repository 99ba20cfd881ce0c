"""What a real server adds to its kernels: launches, scheduler, sampling, front end; few coefficients an engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

from servewise.steptime.coefficients import AllReduce, Coefficients, DecodeAttention, Knot


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOverheads:
    """What a server of one engine on one accelerator adds to its kernels. A step takes

        kernels + ``step_s`` + ``sequence_s`` x sequences that get a token

    where the kernels of a step that takes in prompts are ``prompt_slowness`` times as slow as measured alone (they run
    beside decode, at other widths, formats and clocks than the tables'), and at least ``prompt_layer_s`` x layers: no
    CUDA graph replays them, so the host launches one by one. ``launch_scale`` scales what kernels and messages take
    before any byte moves (newer chips and engines that fuse more: below 1). ``request_s`` [s] is what a request takes
    outside of steps (HTTP, tokenising, the client's own turn): it occupies no step.
    """

    step_s: float = 0.0
    sequence_s: float = 0.0
    prompt_layer_s: float = 0.0
    prompt_slowness: float = 1.0
    launch_scale: float = 1.0
    request_s: float = 0.0

    def to_dict(self) -> dict[str, float]:
        """The coefficients by name."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


OVERHEADS = tuple(each.name for each in fields(ServerOverheads))
# No coefficient lies outside: slower than alone, never faster; launches neither vanish nor triple.
BOUNDS: Mapping[str, tuple[float, float]] = {
    "step_s": (0.0, 0.1),
    "sequence_s": (0.0, 0.01),
    "prompt_layer_s": (0.0, 0.01),
    "prompt_slowness": (1.0, 3.0),
    "launch_scale": (0.3, 3.0),
    "request_s": (0.0, 1.0),
}


def with_launches(known: Coefficients, scale: float) -> Coefficients:
    """``known`` with launches of kernels, and latencies of messages, ``scale`` times as long.

    Times per byte and per FLOP stay, so no step goes below its floor.
    """
    attention = known.attention
    return replace(
        known,
        gemm=replace(known.gemm, launch_s=known.gemm.launch_s * scale),
        attention=replace(
            attention,
            decode=_decode(attention.decode, scale),
            multi_head=_decode(attention.multi_head, scale),
            prefill_launch_s=attention.prefill_launch_s * scale,
        ),
        small=replace(known.small, layer_s=known.small.layer_s * scale),
        all_reduce={ranks: _message(curve, scale) for ranks, curve in known.all_reduce.items()},
    )


def _decode(known: DecodeAttention, scale: float) -> DecodeAttention:
    return replace(known, launch_s=known.launch_s * scale, ramp_s=known.ramp_s * scale)


def _message(curve: AllReduce, scale: float) -> AllReduce:
    saved = (1.0 - scale) * curve.knots[0].seconds
    return AllReduce(tuple(Knot(size, seconds - saved) for size, seconds in curve.knots))
