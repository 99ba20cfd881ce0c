"""Prompts that ask for something, for when the user brings none: what a quantised build does to sense shows there."""

from __future__ import annotations

from itertools import product

TASKS = (
    "Explain in a few sentences how {} works.",
    "Write a short paragraph about the history of {}.",
    "List three common mistakes that people make with {} and how to avoid them.",
    "Describe {} to a ten-year-old child.",
)
SUBJECTS = (
    "a bicycle", "the heart", "a suspension bridge", "rainfall", "a library catalogue", "bread", "the compass",
    "a refrigerator", "photosynthesis", "the stock market", "a sailing boat", "the printing press", "an elevator",
    "vaccination", "a telescope", "the seasons", "a steam engine", "soap", "the alphabet", "a dam", "glass",
    "the post", "a violin", "tides", "a clock", "traffic lights", "paper", "the microscope", "insurance", "chess",
    "a river delta", "map making",
)  # fmt: skip


def built_in_prompts(count: int) -> list[str]:
    """The first ``count`` of 128 prompts, no two alike; after those they begin again with another number of words.

    >>> built_in_prompts(2)[1]
    'Explain in a few sentences how the heart works.'
    """
    pairs = [task.format(subject) for task, subject in product(TASKS, SUBJECTS)]
    rounds = -(-count // len(pairs))
    texts = pairs + [f"{text} Use at most {40 + 10 * turn} words." for turn in range(1, rounds) for text in pairs]
    return texts[:count]
