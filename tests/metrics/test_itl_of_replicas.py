"""Gaps between tokens of several replicas: each has its own steps, whatever the others do meanwhile."""

from __future__ import annotations

from array import array

from servewise.metrics.latency import itl_of_steps
from servewise.records.columns import StepColumns


def steps(*rows: tuple[float, float, int, int, int, int]) -> StepColumns:
    """Rows of (start, seconds, decoding, prefill tokens, active, replica), a step each."""
    found = StepColumns()
    for start_s, seconds, decodes, prefill, active, replica in rows:
        found.start_s.append(start_s)
        found.seconds.append(seconds)
        found.decode_sequences.append(decodes)
        found.prefill_tokens.append(prefill)
        found.active.append(active)
        found.replica.append(replica)
        found.steps.append(1)
    found.running = found.waiting = found.kv_tokens = array("q", [0] * len(rows))
    return found


def test_another_replica_s_prefill_holds_nobody_up() -> None:
    """Replica 0 decodes two from 0 to 1 and from 1 to 2 s while replica 1 prefills from 0.5 to 1.9 s: two gaps of 1 s
    each; were it one replica's, the second step's gaps would run from 1 s through the prefill.
    """
    values, weights = itl_of_steps(steps((0, 1, 2, 0, 2, 0), (0.5, 1.4, 0, 50, 1, 1), (1, 1, 2, 0, 2, 0)))

    assert list(values[weights > 0]) == [1.0, 1.0]
    assert list(weights[weights > 0]) == [2.0, 2.0]


def test_its_own_prefill_does() -> None:
    """Replica 0 decodes two to 1 s, prefills to 3 s, decodes to 4 s: of three then, two waited 3 s, the new one 1 s."""
    own = [(0, 1, 2, 0, 2, 0), (1, 2, 0, 50, 1, 0), (3, 1, 3, 0, 3, 0)]
    values, weights = itl_of_steps(steps(*own, (3.5, 1, 1, 0, 1, 1)))
    found = sorted((value, weight) for value, weight in zip(values, weights, strict=True) if weight > 0)

    assert found == [(1.0, 1.0), (1.0, 1.0), (1.0, 2.0), (3.0, 2.0)]
