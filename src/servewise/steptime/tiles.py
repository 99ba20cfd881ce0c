"""Decoding in the prompts' attention kernel: what it costs that a tile of queries holds one."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from servewise.steptime.attention import AttentionLayer
from servewise.steptime.coefficients import TiledDecode
from servewise.steptime.estimator import Line
from servewise.steptime.lines import largest

LinesFor = Callable[[int], tuple[Line, ...]]


class Tiles:
    """The decode attention of a step that holds prompts too: a linear form over the layers that share the kernel.

    ``others`` gives the lines of the layers that do not. Keys beyond the last whole tile are computed all the same:
    half a tile a sequence on average. The longest prompt chunk is taken to be the step's prompt tokens: at most too
    long. Beyond the chip's cache (128 sequences of 2,000 tokens) the kernel reads keys once a head, not told here.
    """

    def __init__(
        self, tiled: TiledDecode, layers: Iterable[tuple[int, AttentionLayer]], rate: float, others: LinesFor
    ) -> None:
        shared = [(count, layer) for count, layer in layers if layer.tiled_heads]
        self._others = others
        self._known: dict[int, tuple[Line, ...]] = {}
        self._per_context = sum(count * layer.decode.full for count, layer in shared) * tiled.rows / rate
        self._per_windowed = sum(count * layer.decode.windowed for count, layer in shared) * tiled.rows / rate
        blocks_s = sum(count * layer.tiled_heads for count, layer in shared) * tiled.block_s
        self._per_sequence = (self._per_context + self._per_windowed) * tiled.keys / 2 + blocks_s
        self._per_prompt_token = blocks_s / tiled.rows

    def seconds(self, sequences: int, context_tokens: int, windowed_tokens: int, prompt_tokens: int) -> float:
        """``sequences`` that read so many KV tokens, beside chunks of ``prompt_tokens`` in all [s]."""
        lines = self._known.get(sequences)
        if lines is None:
            lines = self._known[sequences] = self._others(sequences)
        return (
            self._per_context * context_tokens
            + self._per_windowed * windowed_tokens
            + (self._per_sequence + self._per_prompt_token * prompt_tokens) * sequences
            + (largest(lines, context_tokens, windowed_tokens) if lines else 0.0)
        )
