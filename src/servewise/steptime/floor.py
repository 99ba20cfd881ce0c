"""The physical floor of a step: max(FLOPs / peak, bytes / bandwidth), which no estimator goes below."""

from __future__ import annotations

from dataclasses import dataclass

from servewise.deployment.deployment import Deployment
from servewise.steptime.estimator import Line
from servewise.steptime.shape import StepShape
from servewise.steptime.work import Experts, Work, compute_formats, work_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """The work of a step in seconds at the full rates of the accelerator: compute and memory, each linear.

    Fields ending in ``_s`` are seconds a step; the others are seconds a token, row, pair, KV token or sequence.
    ``experts`` carries seconds in place of bytes.
    """

    dense_s: float
    head_s: float
    experts: tuple[Experts, ...]
    per_token_read: float
    per_kv_token: float
    per_windowed_kv_token: float
    per_sequence: float
    per_token_computed: float
    per_row: float
    per_pair: float
    per_windowed_pair: float
    per_decode_pair: float
    per_windowed_decode_pair: float

    def compute_s(self, shape: StepShape) -> float:
        """FLOPs / peak [s]."""
        sequences, full, windowed, _, tokens, _, _, pairs, windowed_pairs, rows = shape
        linear = self.per_token_computed * (sequences + tokens) + self.per_row * rows
        decode = self.per_decode_pair * full + self.per_windowed_decode_pair * windowed
        return linear + decode + self.per_pair * pairs + self.per_windowed_pair * windowed_pairs

    def memory_s(self, shape: StepShape) -> float:
        """Bytes / bandwidth [s]."""
        sequences, full, windowed, prompts, tokens, prompt_full, prompt_windowed, _, _, rows = shape
        return (
            self.weights_s(sequences + tokens, rows)
            + self.per_kv_token * (full + prompt_full)
            + self.per_windowed_kv_token * (windowed + prompt_windowed)
            + self.per_sequence * (sequences + prompts)
        )

    def weights_s(self, tokens: int, rows: int) -> float:
        """Weight bytes of a step of ``tokens`` new tokens / bandwidth [s]; no tokens, no step."""
        if not tokens:
            return 0.0
        read = self.dense_s + self.per_token_read * tokens
        if rows:
            read += self.head_s
        for size, unread in self.experts:
            read += size * (1.0 - unread**tokens)
        return read

    def seconds(self, shape: StepShape) -> float:
        """The larger of the two [s]."""
        return max(self.compute_s(shape), self.memory_s(shape))

    def decode_lines(self, sequences: int) -> tuple[Line, Line]:
        """Compute and memory of a pure decode step as lines in the context."""
        compute = self.per_token_computed * sequences + self.per_row * sequences
        memory = self.weights_s(sequences, sequences) + self.per_sequence * sequences
        return (
            Line(compute, self.per_decode_pair, self.per_windowed_decode_pair),
            Line(memory, self.per_kv_token, self.per_windowed_kv_token),
        )


def floor_of(deployment: Deployment) -> Floor:
    """The floor of ``deployment``: each product at the dense peak of its operands' format."""
    accelerator, formats = deployment.accelerator, compute_formats(deployment)
    return at_rates(
        work_of(deployment),
        bandwidth=accelerator.bandwidth_bytes_per_s,
        linear_flops_per_s=accelerator.peak_flops(formats.linear),
        head_flops_per_s=accelerator.peak_flops(formats.head),
        attention_flops_per_s=accelerator.peak_flops(formats.attention),
    )


def at_rates(
    work: Work,
    *,
    bandwidth: float,
    linear_flops_per_s: float,
    head_flops_per_s: float,
    attention_flops_per_s: float,
) -> Floor:
    """``work`` at a bandwidth [bytes/s] and at the rates of layers, head and attention [FLOP/s]."""
    return Floor(
        dense_s=work.dense_weight_bytes / bandwidth,
        head_s=work.head_bytes / bandwidth,
        experts=tuple(Experts(each.bytes / bandwidth, each.unread) for each in work.experts),
        per_token_read=work.embedding_bytes_per_token / bandwidth,
        per_kv_token=work.kv_bytes_per_token / bandwidth,
        per_windowed_kv_token=work.windowed_kv_bytes_per_token / bandwidth,
        per_sequence=work.state_bytes_per_sequence / bandwidth,
        per_token_computed=work.flops_per_token / linear_flops_per_s,
        per_row=work.head_flops_per_row / head_flops_per_s,
        per_pair=work.flops_per_pair / attention_flops_per_s,
        per_windowed_pair=work.flops_per_windowed_pair / attention_flops_per_s,
        per_decode_pair=work.decode_flops_per_pair / attention_flops_per_s,
        per_windowed_decode_pair=work.decode_flops_per_windowed_pair / attention_flops_per_s,
    )
