"""Orders of admission, watermark and swap of the plain policy."""

from __future__ import annotations

import pytest
from tests.batching.driving import filled, planned, serials, step

from servewise.batching.policies import Continuous
from servewise.errors import InputError


@pytest.mark.parametrize(
    ("order", "first"),
    [("fcfs", [0, 1, 2]), ("priority", [1, 2, 0]), ("shortest_prompt", [2, 0, 1]), ("shortest_output", [1, 0, 2])],
)
def test_who_is_admitted_first(order: str, first: list[int]) -> None:
    """Prompts 8, 9, 3; outputs 5, 2, 7; priorities 2, 0, 1."""
    batcher = filled(Continuous(3, 100, order=order), (8, 5), (9, 2), (3, 7), priorities=(2, 0, 1))

    assert serials(planned(batcher).admitted) == first


def test_the_watermark_stays_free_beside_others_but_not_on_an_empty_server() -> None:
    """Ten blocks, a watermark of two: nine blocks run alone; beside one block seven are admitted, and eight are not."""
    policy = Continuous(4, 200, watermark=0.2)

    assert serials(planned(filled(policy, (144, 2), blocks=10)).admitted) == [0]
    assert serials(planned(filled(policy, (8, 2), (112, 2), blocks=10)).admitted) == [0, 1]
    assert serials(planned(filled(policy, (8, 2), (113, 2), blocks=10)).admitted) == [0]


def test_the_host_has_room_again_when_a_swapped_request_is_cancelled() -> None:
    """One block on the host: the first swapped one is taken out, the next swap finds the room."""
    batcher = filled(Continuous(2, 100, swap_blocks=1), (16, 9), (16, 3), (16, 3), blocks=3)
    step(batcher)
    out, _ = step(batcher)
    assert out.moved_tokens == 16
    batcher.finish(out.preempted[0])
    while not (batch := step(batcher)[0]).preempted:
        pass

    assert batch.moved_tokens == 16


@pytest.mark.parametrize("settings", [{"watermark": 1.0}, {"watermark": -0.1}, {"swap_blocks": -1}])
def test_shares_and_room_that_cannot_be_are_refused(settings: dict[str, float]) -> None:
    """A watermark of the whole pool, negative numbers."""
    with pytest.raises(InputError):
        Continuous(**settings)  # type: ignore[arg-type]


def test_an_unknown_order_is_refused() -> None:
    """With the known ones."""
    with pytest.raises(InputError, match="order"):
        Continuous(order="longest")
