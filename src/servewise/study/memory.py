"""KV bytes of a sequence and the largest batch that fits, from the rooms that every command uses."""

from __future__ import annotations

from servewise.deployment.capacity import DoesNotFit, kv_capacity, max_sequences
from servewise.deployment.deployment import Deployment
from servewise.modelspec.kv import kv_bytes
from servewise.precision import FORMATS
from servewise.study import inputs, published
from servewise.study.agreement import exact, holds, rounded
from servewise.study.row import StudyTable
from servewise.units import GB


def kv_bytes_table() -> StudyTable:
    """KV gigabytes of one sequence, and of 32, of the catalogue's Llama 2 13B in 16 bits."""
    model, bf16 = inputs.llama_2_13b(), FORMATS["bf16"]
    singles = [
        rounded({"context_tokens": context, "batch": 1}, "KV cache", printed, kv_bytes(model, context, bf16) / GB, "GB")
        for context, printed in published.KV_GB.items()
    ]
    context, batch = published.SEQUENCE_TOKENS, published.BATCH_AT_53_GB
    case = {"context_tokens": context, "batch": batch}
    all_bytes = batch * kv_bytes(model, context, bf16)
    return StudyTable(
        name="kv_bytes",
        title="KV cache of Llama 2 13B, 16 bits",
        rows=(
            *singles,
            rounded(case, "KV cache", published.KV_GB_AT_BATCH_32, all_bytes / GB, "GB"),
            holds(case, "KV cache is about twice the weights", 1.5 < all_bytes / (2 * inputs.PARAMETERS) < 2.5),
        ),
    )


def largest_batch_table() -> StudyTable:
    """Largest batch by sequence length on the study's 80 GB, nothing reserved."""
    rows = [
        exact({"context_tokens": context, "variant": variant}, "largest batch", printed, largest, "sequences")
        for context, row in published.LARGEST_BATCH.items()
        for (variant, deployment), printed in zip(variants().items(), row, strict=True)
        for largest in [largest_batch(deployment, context)]
    ]
    return StudyTable(
        name="largest_batch",
        title="Largest batch that fits (weights 26 GB, device 80 GB)",
        rows=tuple(rows),
        note="the study's arithmetic: memory minus weights, nothing reserved (engine ideal)",
    )


def variants() -> dict[str, Deployment]:
    """The study's four variants by name."""
    deployments = (
        inputs.deployment(),
        inputs.deployment(kv="int8"),
        inputs.deployment(weights="int4"),
        inputs.deployment(kv_heads_divided_by=8),
    )
    return dict(zip(published.BATCH_VARIANTS, deployments, strict=True))


def largest_batch(deployment: Deployment, context_tokens: int) -> int:
    """Sequences of ``context_tokens`` tokens that the deployment holds at once; 0 where the weights do not fit."""
    capacity = kv_capacity(deployment)
    return 0 if isinstance(capacity, DoesNotFit) else max_sequences(deployment, capacity, context_tokens)
