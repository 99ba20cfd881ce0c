"""How a request's tokens are chosen; names and defaults as in the OpenAI API and vLLM's extensions of it."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

from servewise.errors import InputError

GREEDY_BELOW = 1e-5  # a temperature below this counts as 0, as in vLLM (v1/sample/sampler.py)


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingSettings:
    """``temperature`` 0 is greedy. ``top_k`` 0, ``top_p`` 1 and ``min_p`` 0 leave all tokens in.

    ``seed`` makes the request's own random stream; None: drawn by the engine and reported. ``logprobs``: how many
    alternatives to report with each token, None: none at all. ``ignore_end``: go on to ``max_tokens`` (benchmarks).

    Raises InputError for a value outside the range that the OpenAI API and vLLM take.
    """

    max_tokens: int = 128
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    seed: int | None = None
    stop: tuple[str, ...] = ()
    logprobs: int | None = None
    ignore_end: bool = False

    def __post_init__(self) -> None:
        """Refuse what no sampler could mean."""
        _check("max_tokens", self.max_tokens, self.max_tokens >= 1, "1 or more")
        _check("temperature", self.temperature, self.temperature >= 0, "0 (greedy) or more")
        _check("top_k", self.top_k, self.top_k >= 0, "0 (all tokens) or more")
        _check("top_p", self.top_p, 0 < self.top_p <= 1, "above 0 and at most 1")
        _check("min_p", self.min_p, 0 <= self.min_p <= 1, "from 0 to 1")
        _check("presence_penalty", self.presence_penalty, -2 <= self.presence_penalty <= 2, "from -2 to 2")
        _check("frequency_penalty", self.frequency_penalty, -2 <= self.frequency_penalty <= 2, "from -2 to 2")
        _check("repetition_penalty", self.repetition_penalty, self.repetition_penalty > 0, "above 0")
        _check("logprobs", self.logprobs or 0, (self.logprobs or 0) >= 0, "0 or more")
        if not all(self.stop):
            raise InputError("a stop string is empty", hint="leave it out")

    @property
    def greedy(self) -> bool:
        """Whether the most likely token is always taken."""
        return self.temperature < GREEDY_BELOW

    @property
    def penalised(self) -> bool:
        """Whether a token's logit depends on the tokens before."""
        return bool(self.presence_penalty or self.frequency_penalty or self.repetition_penalty != 1.0)


def _check(name: str, value: float, fits: bool, wanted: str) -> None:
    if not (fits and isfinite(value)):
        raise InputError(f"{name} must be {wanted}, not {value!r}")
