"""A value's content as one number."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, replace

import numpy as np

from servewise.executing.content import content_of
from servewise.hardware.catalogue import load_accelerator
from servewise.modelspec.load import load_model
from servewise.plan.candidates import Space, candidates
from servewise.scratch import Scratch


class Memory:
    """It holds itself, as an estimator with a cache of its own methods does."""

    def __init__(self, value: float) -> None:
        self.value, self.me = value, self


def test_equal_content_is_one_number() -> None:
    """Whether two fields hold one object or two equal ones does not matter, nor which objects they are."""
    word = "".join(["a", "b"])

    assert content_of((word, word)) == content_of(("ab", "".join(["a", "b"])))
    assert content_of([Memory(1.0), word]) == content_of([Memory(1.0), "ab"])


def test_every_difference_counts() -> None:
    """Values that differ in the last bit of a float, in type, in order or in nesting have different numbers."""
    values = [1.0, 1.0 + 2**-52, 1, True, "1", (1,), [1], ((1,),), (1, (2, 3)), ((1, 2), 3), {"a": 1}, {"b": 1}]
    values += [Memory(1.0), Memory(2.0), [Memory(1.0), 2], [Memory(1.0), 3], [[Memory(1.0)], 2]]

    assert len({content_of(each) for each in values}) == len(values)


@dataclass(frozen=True)
class Parts:
    """What has a set among its fields."""

    names: frozenset[str]
    size: int = 1


def test_many_sets_are_no_deeper_than_one() -> None:
    """A hundred values with sets in them have a number, which does not hang on the order that a process gives sets."""
    command = (
        "from tests.executing.test_content import Parts\nfrom servewise.executing.content import content_of\n"
        "print(content_of([Parts(frozenset({'a', 'b', str(i), 'd'})) for i in range(100)]))"
    )
    found = set()
    for seed in ("1", "2", "3"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        found.add(subprocess.check_output([sys.executable, "-c", command], env=environment))

    assert len(found) == 1
    assert content_of([Parts(frozenset("ab"))]) != content_of([Parts(frozenset("ac"))])
    assert content_of([Parts(frozenset("ab"), 1)]) != content_of([Parts(frozenset("ab"), 2)])
    assert content_of([[frozenset({i})] for i in range(60)]) != content_of([[frozenset({i})] for i in range(61)])


def test_columns_on_disk_count_by_their_numbers() -> None:
    """Two files of the same numbers are the same content, wherever they lie; a changed number makes another."""
    with Scratch() as one, Scratch() as two:
        columns = one.column(), two.column(), two.column()
        for column, values in zip(columns, ([1.0, 2.0], [1.0, 2.0], [1.0, 3.0]), strict=True):
            column.append(np.array(values))
        first, same, other = (content_of([Memory(1.0), (column,)]) for column in columns)

    assert first == same != other


def test_a_plan_of_another_chip_is_another() -> None:
    """The candidates of a plan: the same from the same names, others once a chip's memory is one byte larger."""

    def of(extra_bytes: int) -> str:
        chip = load_accelerator("a100-80gb")
        chip = replace(chip, memory=replace(chip.memory, value=chip.memory.value + extra_bytes))
        return content_of(candidates(Space(model=load_model("llama-2-13b"), accelerators=(chip,), counts=(1, 2))))

    assert of(0) == of(0)
    assert of(0) != of(1)
