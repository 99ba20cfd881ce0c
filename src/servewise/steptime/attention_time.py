"""The time of a step's attention kernels."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from servewise.deployment.deployment import Deployment
from servewise.steptime.attention import AttentionLayer, attention_layers
from servewise.steptime.coefficients import Coefficients, DecodeAttention
from servewise.steptime.estimator import Line
from servewise.steptime.lines import largest, summed
from servewise.steptime.shape import StepShape
from servewise.steptime.tiles import Tiles
from servewise.steptime.work import compute_formats


class AttentionTime:
    """Attention kernels of a step: lines in the context for decode, a linear form for prefill."""

    def __init__(self, deployment: Deployment, coefficients: Coefficients) -> None:
        accelerator = deployment.accelerator
        self._bandwidth = accelerator.bandwidth_bytes_per_s
        self._coefficients = coefficients.attention
        self._layers = attention_layers(deployment)
        self._rate = accelerator.peak_flops(compute_formats(deployment).attention) * self._coefficients.flop_efficiency
        self.prefill = self._prefill_form()
        tiled = coefficients.tiled
        others = [(count, layer) for count, layer in self._layers if not layer.tiled_heads]
        self.tiles = None if tiled is None else Tiles(tiled, self._layers, self._rate, partial(self._lines, others))

    def lines(self, sequences: int) -> tuple[Line, ...]:
        """The lines whose maximum is the decode attention of ``sequences`` sequences, all layers."""
        return self._lines(self._layers, sequences)

    def _lines(self, layers: Iterable[tuple[int, AttentionLayer]], sequences: int) -> tuple[Line, ...]:
        return summed(self._layer_lines(count, layer, sequences) for count, layer in layers)

    def _layer_lines(self, count: int, layer: AttentionLayer, sequences: int) -> list[Line]:
        kernel = self._kernel(layer)
        state = layer.state_bytes * sequences / self._bandwidth / kernel.kv_efficiency
        per_token, per_windowed = layer.kv_bytes / self._bandwidth, layer.windowed_kv_bytes / self._bandwidth
        slower = 1.0 / kernel.kv_efficiency
        return [
            Line(count * (kernel.launch_s + state), 0.0, 0.0),
            Line(count * (kernel.ramp_s + state), count * per_token * slower, count * per_windowed * slower),
            Line(count * state, count * per_token, count * per_windowed),
            Line(0.0, count * layer.decode.full / self._rate, count * layer.decode.windowed / self._rate),
        ]

    def _kernel(self, layer: AttentionLayer) -> DecodeAttention:
        return self._coefficients.multi_head if layer.multi_head else self._coefficients.decode

    def _prefill_form(self) -> tuple[float, float, float, float, float, float, float]:
        """Seconds a step, prompt, token, KV token, windowed KV token, pair and windowed pair."""
        form = [0.0] * 7
        for count, layer in self._layers:
            read = self._bandwidth * self._kernel(layer).kv_efficiency
            moved = layer.moved_bytes_per_token / self._bandwidth
            each = (
                self._coefficients.prefill_launch_s,
                layer.state_bytes / read,
                moved * self._coefficients.activation_factor,
                layer.kv_bytes / read,
                layer.windowed_kv_bytes / read,
                layer.prefill.full / self._rate,
                layer.prefill.windowed / self._rate,
            )
            form = [total + count * value for total, value in zip(form, each, strict=True)]
        return (form[0], form[1], form[2], form[3], form[4], form[5], form[6])

    def compute_s(self, shape: StepShape) -> float:
        """Scores and weighted values alone [s]."""
        *_, per_pair, per_windowed_pair = self.prefill
        prefill = per_pair * shape.prefill_pairs + per_windowed_pair * shape.prefill_windowed_pairs
        return prefill + sum(count * self._decode_compute_s(layer, shape) for count, layer in self._layers)

    def memory_s(self, shape: StepShape) -> float:
        """KV, states, queries and results alone [s]."""
        _, per_prompt, per_token, per_end, per_windowed_end, *_ = self.prefill
        return (
            sum(count * self._decode_memory_s(layer, shape) for count, layer in self._layers)
            + per_prompt * shape.prefill_sequences
            + per_token * shape.prefill_tokens
            + per_end * shape.prefill_context_tokens
            + per_windowed_end * shape.prefill_windowed_tokens
        )

    def overhead_s(self, shape: StepShape) -> float:
        """What the kernels take beyond their arithmetic and memory: launches, and tiles that one query fills [s]."""
        beyond = self.prefill[0] if shape.prefill_sequences else 0.0
        if shape.prefill_sequences and shape.decode_sequences:
            beyond += self._beside_s(shape)
        if shape.decode_sequences:
            for count, layer in self._layers:
                busy = max(self._decode_memory_s(layer, shape), self._decode_compute_s(layer, shape))
                beyond += count * (self._decode_s(layer, shape) - busy)
        return beyond

    def _beside_s(self, shape: StepShape) -> float:
        """How much longer decoding takes in the prompts' kernel than in its own [s]."""
        if self.tiles is None:
            return 0.0
        sequences, context, windowed = shape[:3]
        tiled = self.tiles.seconds(sequences, context, windowed, shape.prefill_tokens)
        return max(0.0, tiled - largest(self.lines(sequences), context, windowed))

    def _decode_s(self, layer: AttentionLayer, shape: StepShape) -> float:
        lines = self._layer_lines(1, layer, shape.decode_sequences) if shape.decode_sequences else []
        return largest(lines, shape.decode_context_tokens, shape.decode_windowed_tokens)

    def _decode_compute_s(self, layer: AttentionLayer, shape: StepShape) -> float:
        full, windowed = layer.decode
        return (full * shape.decode_context_tokens + windowed * shape.decode_windowed_tokens) / self._rate

    def _decode_memory_s(self, layer: AttentionLayer, shape: StepShape) -> float:
        """KV and states at the kernel's efficiency, or at the cache's where the whole kernel is faster than that."""
        kept = layer.kv_bytes * shape.decode_context_tokens + layer.windowed_kv_bytes * shape.decode_windowed_tokens
        kept += layer.state_bytes * shape.decode_sequences
        return min(kept / self._bandwidth / self._kernel(layer).kv_efficiency, self._decode_s(layer, shape))
