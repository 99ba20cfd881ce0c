"""Asks are built before they are due, so many at most, and not while one is handed out."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

import pytest

from servewise.measure.ask import Ask
from servewise.measure.load.supply import AHEAD, AHEAD_BYTES, Deal, Supply
from servewise.workload.request import Request


@dataclass(eq=False)
class Maker:
    """Makes bodies of ``size`` bytes and remembers which."""

    size: int = 2
    made: list[int] = field(default_factory=list)

    def __call__(self, request: Request) -> Ask:
        self.made.append(request.serial)
        return Ask(serial=request.serial, body=b" " * self.size, output_tokens=1)


def numbered(count: int) -> Iterator[Request]:
    """Requests at 0, 1, 2 ... s."""
    return (Request(serial, float(serial), 1, 1) for serial in range(count))


@pytest.mark.parametrize(("size", "ahead"), [(2, AHEAD), (2**20, AHEAD_BYTES // 2**20), (2 * AHEAD_BYTES, 1)])
def test_so_many_are_built_ahead(size: int, ahead: int) -> None:
    """Short ones by number, long ones by bytes, and one at least however long it is."""
    maker = Maker(size)
    assert Supply(partial(numbered, 5000), maker).next_s() == 0
    assert len(maker.made) == ahead


def test_nothing_is_built_while_one_is_handed_out() -> None:
    """Only an idle moment adds another, and only as many as were taken."""
    maker = Maker()
    supply = Supply(partial(numbered, 5000), maker)
    supply.next_s()
    assert [supply.take().serial for _ in range(2)] == [0, 1]
    assert len(maker.made) == AHEAD
    assert [supply.build_one() for _ in range(3)] == [True, True, False]
    assert supply.next_s() == 2


def test_the_end_comes_after_the_last() -> None:
    """And stays."""
    supply = Supply(partial(numbered, 1), Maker())
    assert supply.next_s() == 0
    supply.take()
    assert supply.next_s() is None
    assert not supply.build_one()


def test_a_pickled_supply_begins_again() -> None:
    """A worker is given its share from the start, whatever was built or taken here; no share is an end at once."""
    whole = Supply(partial(numbered, 5), Maker())
    part = whole.dealt(Deal(2, range(1, 2, 2)))
    part.next_s()
    part.take()
    again = pickle.loads(pickle.dumps(part))
    assert [again.take().serial for _ in iter(again.next_s, None)] == [1, 3]
    assert whole.dealt(Deal(2, range(0))).next_s() is None
