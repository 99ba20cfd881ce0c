"""The time of a step's matrix products and small kernels."""

from __future__ import annotations

from servewise.deployment.deployment import Deployment
from servewise.steptime.coefficients import Coefficients
from servewise.steptime.floor import floor_of
from servewise.steptime.gemms import Gemm, feed_forward_width, head_gemm, layer_gemms
from servewise.steptime.kernels import extra_s
from servewise.steptime.shape import StepShape
from servewise.steptime.work import compute_formats


class Products:
    """Matrix products and small kernels of a step, by its new tokens."""

    def __init__(self, deployment: Deployment, coefficients: Coefficients) -> None:
        accelerator, formats = deployment.accelerator, compute_formats(deployment)
        self._bandwidth = accelerator.bandwidth_bytes_per_s
        self._peak = accelerator.peak_flops(formats.linear)
        self._head_peak = accelerator.peak_flops(formats.head)
        self._coefficients = coefficients.gemm
        self._gemms = layer_gemms(deployment)
        self._head = head_gemm(deployment)
        model, small = deployment.model, coefficients.small
        widths = sum(g.count * feed_forward_width(g.feed_forward, model.hidden_size) for g in model.layers)
        moved = small.hidden_bytes * model.hidden_size * model.layer_count
        moved += small.width_bytes * widths / deployment.parallelism.tensor
        launches = small.layer_s * model.layer_count + extra_s(deployment, coefficients)
        self._small_s = launches + coefficients.step_overhead_s
        self._small_per_token = moved / self._bandwidth + floor_of(deployment).per_token_read

    def seconds(self, tokens: int) -> float:
        """Products of the layers, small kernels and the engine's overhead [s]."""
        return self.layers_s(tokens) + self.small_s(tokens)

    def layers_s(self, tokens: int) -> float:
        """Products of the layers [s]."""
        return sum(each.calls * self._one(each, tokens, self._peak) for each in self._gemms)

    def small_s(self, tokens: int) -> float:
        """Small kernels, and the engine's overhead [s]."""
        return self._small_s + self._small_per_token * tokens

    def head_seconds(self, rows: int) -> float:
        """The output projection for ``rows`` positions [s]."""
        return self._one(self._head, rows, self._head_peak) if rows else 0.0

    def _one(self, gemm: Gemm, tokens: int, peak: float) -> float:
        read, work = gemm.read_bytes(tokens), gemm.work_tokens(tokens)
        moved = gemm.activation_bytes_per_token * work
        bandwidth = self._bandwidth
        return self._coefficients.seconds(read / bandwidth, moved / bandwidth, gemm.flops_per_token * work / peak)

    def compute_s(self, shape: StepShape) -> float:
        """Arithmetic alone [s]."""
        tokens = shape.tokens
        layers = sum(g.calls * g.flops_per_token * g.work_tokens(tokens) for g in self._gemms) / self._peak
        head = self._head.flops_per_token * shape.logit_rows / self._head_peak
        return (layers + head) / self._coefficients.flop_efficiency

    def memory_s(self, shape: StepShape) -> float:
        """Weights, activations and small kernels' bytes alone [s]."""
        calls = [(each, shape.tokens) for each in self._gemms]
        calls += [(self._head, shape.logit_rows)] if shape.logit_rows else []
        read = sum(g.calls * g.read_bytes(n) for g, n in calls) / self._bandwidth
        moved = sum(g.calls * g.activation_bytes_per_token * g.work_tokens(n) for g, n in calls) / self._bandwidth
        return (
            read / self._coefficients.weight_efficiency
            + moved * self._coefficients.activation_factor
            + self._small_per_token * shape.tokens
        )

    def overhead_s(self, shape: StepShape) -> float:
        """Launches of products and small kernels, and the engine's own time [s]."""
        calls = sum(each.calls for each in self._gemms) + (1 if shape.logit_rows else 0)
        return calls * self._coefficients.launch_s + self._small_s
