"""The study's largest-batch table: memory minus weights, nothing reserved."""

from __future__ import annotations

import pytest
from tests.deployment.builders import BF16, INT4, INT8, deployment, study_model

from servewise.deployment.capacity import KvCapacity, kv_capacity, max_sequences
from servewise.precision import Precision

STUDY = {  # context: 16-bit cache, 8-bit cache, 4-bit weights, 1/8 of the KV heads
    512: (128, 257, 175, 1029),
    2048: (32, 64, 43, 257),
    8192: (8, 16, 10, 64),
}


@pytest.mark.parametrize("context", STUDY)
@pytest.mark.parametrize(
    ("column", "kv", "weights", "kv_heads"),
    [(0, BF16, BF16, 40), (1, INT8, BF16, 40), (2, BF16, INT4, 40), (3, BF16, BF16, 5)],
)
def test_study_largest_batch(context: int, column: int, kv: Precision, weights: Precision, kv_heads: int) -> None:
    """80 GB less 26 GB of weights holds the study's numbers of sequences, to the last one."""
    asked = deployment(study_model(kv_heads), 80e9, kv=kv, weights=weights)
    capacity = kv_capacity(asked)

    assert isinstance(capacity, KvCapacity)
    assert STUDY[context][column] == max_sequences(asked, capacity, context)


def test_study_bytes() -> None:
    """13e9 parameters in 16 bits are 26 GB and a token of Llama 2 13B takes 819,200 bytes, as the study says."""
    capacity = kv_capacity(deployment(study_model(), 80e9))

    assert isinstance(capacity, KvCapacity)
    assert (capacity.weight_bytes, capacity.kv_budget_bytes, capacity.kv_bytes_per_token) == (26e9, 54e9, 819_200)
