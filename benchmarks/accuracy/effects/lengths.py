"""Lengths drawn for the experiments."""

from __future__ import annotations

import numpy as np


def lognormal(
    prompt: float, prompt_sigma: float, output: float, output_sigma: float, count: int, *, seed: int, most: int = 8000
) -> list[tuple[int, int]]:
    """(prompt, output) tokens of ``count`` requests with those means and spreads (of the logarithm)."""
    rng = np.random.default_rng((seed, 1))
    drawn = (
        np.clip(rng.lognormal(np.log(mean) - sigma**2 / 2, sigma, count), 4, most)
        for mean, sigma in ((prompt, prompt_sigma), (output, output_sigma))
    )
    return [(int(one), int(two)) for one, two in zip(*drawn, strict=True)]
