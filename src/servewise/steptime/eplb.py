"""Experts copied and placed by their load, as DeepSeek's EPLB does within a node and vLLM and SGLang after it.

Greedy twice: the next copy goes to the expert whose copies have the most each; then the copies, heaviest first, each to
the lightest rank that has room. Source: deepseek-ai/EPLB eplb.py (5791971), ``replicate_experts`` and
``balanced_packing``, as ``rebalance_experts`` calls them with one group and one node; vllm/distributed/eplb/policy/
default.py (02c1119) does the same. Left out: groups of experts kept to a node.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Placement:
    """Which expert lies in each slot, the ranks' slots one after another, for each layer.

    ``logical`` (layer, slot): the expert; ``copy`` (layer, slot): which of its copies; ``copies`` (layer, expert): how
    many there are.
    """

    logical: Whole
    copy: Whole
    copies: Whole

    def share(self, often: Floats) -> Floats:
        """What of each expert (layer, expert) comes to each slot, as its copies share evenly."""
        found: Floats = np.take_along_axis(often / self.copies, self.logical, axis=1)
        return found


def placed(loads: Floats, slots: int, ranks: int) -> Placement:
    """``loads`` (layer, expert) over ``slots``, as many on each of ``ranks``.

    >>> found = placed(np.array([[3.0, 1.0]]), 4, 2)  # the hot expert is there three times, each for a load of 1
    >>> found.logical.tolist(), found.copies.tolist()
    ([[0, 0, 1, 0]], [[3, 1]])
    """
    logical, copy, copies = _copied(loads, slots)
    each = np.take_along_axis(loads / copies, logical, axis=1)
    at = _packed(each, ranks)
    return Placement(np.take_along_axis(logical, at, axis=1), np.take_along_axis(copy, at, axis=1), copies)


def _copied(loads: Floats, slots: int) -> tuple[Whole, Whole, Whole]:
    """The expert and the number of each copy, those beyond the first of each behind; and how many each expert has."""
    layers, experts = loads.shape
    every = np.arange(layers)
    copies = np.ones((layers, experts), dtype=np.int64)
    logical = np.tile(np.arange(slots), (layers, 1))
    copy = np.zeros((layers, slots), dtype=np.int64)
    for slot in range(experts, slots):
        hottest = np.argmax(loads / copies, axis=1)
        logical[:, slot], copy[:, slot] = hottest, copies[every, hottest]
        copies[every, hottest] += 1
    return logical, copy, copies


def _packed(each: Floats, ranks: int) -> Whole:
    """For each slot, the ranks' one after another, which of the copies with load ``each`` lies there."""
    layers, slots = each.shape
    room, every = slots // ranks, np.arange(layers)
    found = np.tile(np.arange(slots), (layers, 1))
    if room == 1:
        return found
    weight, held = np.zeros((layers, ranks)), np.zeros((layers, ranks), dtype=np.int64)
    for item in np.argsort(-each, axis=1, kind="stable").T:
        lightest = np.argmin(weight, axis=1)
        found[every, lightest * room + held[every, lightest]] = item
        weight[every, lightest] += each[every, item]
        held[every, lightest] += 1
        weight[held == room] = np.inf
    return found
