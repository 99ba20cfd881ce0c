"""What a launch leaves for its KV cache on a known accelerator, and how long its largest chunk takes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from servewise.check.engines.settings import Settings
from servewise.deployment.capacity import DoesNotFit, KvCapacity, kv_capacity, max_sequences
from servewise.deployment.deployment import Deployment, Limits, Parallelism
from servewise.deployment.engine import engine_profile
from servewise.deployment.formats import engine_formats
from servewise.errors import InputError
from servewise.hardware.accelerator import Accelerator
from servewise.modelspec.spec import ModelSpec
from servewise.precision import FORMATS, Precision
from servewise.steptime.api import estimator_for
from servewise.steptime.shape import prefill_shape

# Bits with the scales that each method stores: AWQ and GPTQ one 16-bit scale and zero per group of 128.
WEIGHTS = {
    "fp8": FORMATS["fp8"],
    "fbgemm_fp8": FORMATS["fp8"],
    "w8a8_fp8": FORMATS["fp8"],
    "modelopt_fp8": FORMATS["fp8"],
    "w8a8_int8": FORMATS["int8"],
    "awq": Precision("int4", 4.25, "bf16"),
    "awq_marlin": Precision("int4", 4.25, "bf16"),
    "gptq": Precision("int4", 4.25, "bf16"),
    "gptq_marlin": Precision("int4", 4.25, "bf16"),
    "bitsandbytes": Precision("int4", 4.5, "bf16"),
    "mxfp4": FORMATS["mxfp4"],
    "modelopt_fp4": FORMATS["nvfp4"],
    "nvfp4": FORMATS["nvfp4"],
}
KV = {"fp8": FORMATS["fp8"], "q8": FORMATS["int8"], "q4": FORMATS["int4"], "int8": FORMATS["int8"]}


@dataclass(frozen=True)
class Sizing:
    """A launch on ``accelerator``, as its engine would lay it out."""

    settings: Settings
    model: ModelSpec
    accelerator: Accelerator

    @cached_property
    def deployment(self) -> Deployment:
        """The deployment that the launch asks for."""
        return self._deployment(WEIGHTS.get(self.settings.words("quantization")))

    @cached_property
    def capacity(self) -> KvCapacity | DoesNotFit:
        """What it leaves for the cache."""
        return kv_capacity(self.deployment)

    @cached_property
    def unquantised(self) -> KvCapacity | DoesNotFit:
        """The same with the weights as the checkpoint stores them."""
        return kv_capacity(self._deployment(None))

    @property
    def context_tokens(self) -> int | None:
        """The longest context served: as stated, else the model's."""
        stated = self.settings.whole("context")
        return stated if stated and stated > 0 else self.model.max_context_tokens

    def sequences_of(self, context_tokens: int) -> int:
        """Sequences of that many tokens that the pool holds at once."""
        capacity = self.capacity
        return 0 if isinstance(capacity, DoesNotFit) else max_sequences(self.deployment, capacity, context_tokens)

    def chunk_s(self, tokens: int) -> float:
        """How long a step of one chunk of ``tokens`` prompt tokens takes [s]."""
        clock = estimator_for(self.deployment, "calibrated")
        return clock.seconds(prefill_shape(1, tokens, clock.window_tokens))

    def _deployment(self, weights: Precision | None) -> Deployment:
        asked = self.settings
        kv = next((each for name, each in KV.items() if asked.words("kv").startswith(name)), None)
        formats = engine_formats(self.model, self.accelerator, weights=weights, kv=kv)
        share, batched, at_once = asked.number("utilization"), asked.whole("batched"), asked.whole("sequences")
        return Deployment(
            model=self.model,
            accelerator=self.accelerator,
            weights=formats.weights,
            kv=formats.kv,
            activations=formats.activations,
            engine=asked.launch.engine,
            parallelism=Parallelism(tensor=asked.tensor, pipeline=asked.pipeline),
            limits=Limits(
                memory_utilization=share if share and 0 < share <= 1 else None,
                max_batched_tokens=batched if batched and batched >= (at_once or 1) else None,
                max_sequences=at_once if at_once and at_once > 0 else None,
            ),
        )


def sizing_of(settings: Settings, model: ModelSpec, accelerator: Accelerator) -> Sizing | None:
    """The sizing of a launch; None where its split is impossible, which other findings say."""
    sizing = Sizing(settings, model, accelerator)
    try:
        engine_profile(settings.launch.engine)
        _ = sizing.capacity
    except InputError:
        return None
    return sizing
