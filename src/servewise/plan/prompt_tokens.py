"""What a prompt's tokens take at least, however the prompt is cut."""

from __future__ import annotations

import numpy as np

from servewise.plan.least import least_per_unit, sizes
from servewise.plan.stages import least_shape
from servewise.steptime.estimator import Estimator

NEAR = 1e-5  # of the pairs, for the slope of a step's time in them


class PromptTokens:
    """What a prompt token takes of ``stage`` at least, in steps of up to ``most`` of them."""

    def __init__(self, stage: Estimator, most: int) -> None:
        ranges = sizes(max(most, 1))
        self._first = np.array([first for first, _ in ranges], float)
        self._last = np.array([last for _, last in ranges], float)
        self._flat_s = np.array([stage.seconds(least_shape(first)) for first, _ in ranges])
        self._pair_s = np.array([_pair_s(stage, first) for first, _ in ranges])

    def least_s(self, prompt_tokens: int) -> float:
        """The least time of a prompt [s]: each of its tokens has (tokens + 1) / 2 pairs on average."""
        mean, last = (prompt_tokens + 1) / 2, np.minimum(self._last, prompt_tokens)
        held = self._first <= prompt_tokens
        slopes = self._pair_s * self._first / last
        values = self._flat_s / last + slopes * (mean - 1)
        most = np.full(int(held.sum()), float(prompt_tokens))
        return prompt_tokens * least_per_unit(values[held], slopes[held], mean=mean, least=1.0, most=most)


def _pair_s(stage: Estimator, tokens: int) -> float:
    """How a step's time begins to grow with its pairs [s]; it grows no slower later."""
    more = max(1, int(NEAR * tokens * tokens))
    return (stage.seconds(least_shape(tokens, tokens + more)) - stage.seconds(least_shape(tokens))) / more
