"""A synthetic workload: an arrival process, two length distributions and, if wanted, shared prefixes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count as counting
from itertools import repeat

import numpy as np

from servewise.errors import InputError
from servewise.workload import checks
from servewise.workload.arrivals import Arrivals
from servewise.workload.lengths import Lengths
from servewise.workload.prefix import SharedPrefix
from servewise.workload.request import Request
from servewise.workload.streams import stream


@dataclass(frozen=True, slots=True, kw_only=True)
class Synthetic:
    """Requests until ``count`` have come or ``duration_s`` has passed, whichever is first.

    Arrivals, prompts, outputs and prefixes are four independent streams of the seed: the same seed gives the same
    lengths at every rate and under every arrival process.
    """

    arrivals: Arrivals
    prompt_lengths: Lengths
    output_lengths: Lengths
    count: int | None = None
    duration_s: float | None = None
    prefix: SharedPrefix | None = None
    name: str = ""

    def __post_init__(self) -> None:
        if self.count is None and self.duration_s is None:
            raise InputError("a synthetic workload needs an end", hint="give a number of requests or a duration")
        if self.count is not None:
            checks.tokens(self.count, "the number of requests")
        if self.duration_s is not None:
            checks.positive(self.duration_s, "the duration", most=checks.MAX_SECONDS, unit="seconds")

    @property
    def title(self) -> str:
        """E.g. ``Poisson 2/s, 512 in, 128 out``."""
        parts = [self.name, str(self.arrivals), f"{self.prompt_lengths} in", f"{self.output_lengths} out"]
        return ", ".join(part for part in (*parts, str(self.prefix or "")) if part)

    @property
    def rate_per_s(self) -> float:
        """Mean arrival rate [requests/s]."""
        return self.arrivals.rate_per_s

    @property
    def mean_prompt_tokens(self) -> float:
        """Mean prompt [tokens], prefix included."""
        return self.prompt_lengths.mean + (self.prefix.mean if self.prefix else 0.0)

    @property
    def mean_output_tokens(self) -> float:
        """Mean output [tokens]."""
        return self.output_lengths.mean

    @property
    def hash_block_tokens(self) -> int | None:
        """Tokens per block of the shared prefixes."""
        return self.prefix.block_tokens if self.prefix else None

    def at_rate(self, rate_per_s: float) -> Synthetic:
        """The same requests at another mean rate (a ``duration_s`` stays, a ``count`` stays)."""
        return replace(self, arrivals=self.arrivals.at_rate(rate_per_s))

    def requests(self, seed: int) -> Iterator[Request]:
        """The requests in order of arrival."""
        left, serial = self.count, 0
        end = math.inf if self.duration_s is None else self.duration_s
        shapes = Shapes(self.prompt_lengths, self.output_lengths, self.prefix, seed)
        for chunk in self.arrivals.times(stream(seed, "arrivals")):
            times = chunk if left is None else chunk[:left]
            late = bool(times[-1] > end)
            times = times[times <= end] if late else times
            yield from shapes.join(serial, times, len(chunk))
            serial += len(times)
            left = None if left is None else left - len(times)
            if late or left == 0:
                return


@dataclass(frozen=True, slots=True)
class ClosedLoop:
    """``concurrency`` users, each of whom sends, waits for the whole answer, thinks ``think_s``, and sends again.

    Arrivals depend on answers, so this is not a ``Workload``: whoever runs it takes the next of ``shapes`` whenever
    a user is free, and stamps its arrival. It ends after ``requests`` in all.
    """

    concurrency: int
    think_s: float
    prompt_lengths: Lengths
    output_lengths: Lengths
    requests: int
    prefix: SharedPrefix | None = None

    def __post_init__(self) -> None:
        checks.tokens(self.concurrency, "the concurrency")
        checks.tokens(self.requests, "the number of requests")
        if self.think_s != 0:
            checks.positive(self.think_s, "the time to think", most=checks.MAX_SECONDS, unit="seconds")

    @property
    def title(self) -> str:
        """E.g. ``closed loop of 8, 512 in, 128 out``."""
        think = f", think {self.think_s:g} s" if self.think_s else ""
        prefix = f", {self.prefix}" if self.prefix else ""
        return f"closed loop of {self.concurrency}{think}, {self.prompt_lengths} in, {self.output_lengths} out{prefix}"

    @property
    def hash_block_tokens(self) -> int | None:
        """Tokens per block of the shared prefixes."""
        return self.prefix.block_tokens if self.prefix else None

    def shapes(self, seed: int) -> Iterator[Request]:
        """The requests in the order in which users take them; ``arrival_s`` is 0 until the run knows it."""
        shapes = Shapes(self.prompt_lengths, self.output_lengths, self.prefix, seed)
        for serial in range(0, self.requests, CHUNK):
            size = min(CHUNK, self.requests - serial)
            yield from shapes.join(serial, np.zeros(size), CHUNK)


CHUNK = 16_384


class Shapes:
    """The lengths and prefixes of successive requests, drawn in chunks of a fixed size from the seed's streams."""

    def __init__(self, prompts: Lengths, outputs: Lengths, prefix: SharedPrefix | None, seed: int) -> None:
        self._prompts, self._outputs, self._prefix = prompts, outputs, prefix
        self._rngs = {purpose: stream(seed, purpose) for purpose in ("prompts", "outputs", "prefixes")}

    def join(self, serial: int, times: np.typing.NDArray[np.float64], size: int) -> Iterator[Request]:
        """Requests at ``times``, from ``serial`` on; always ``size`` are drawn, so that a cut changes none."""
        prompts = self._prompts.draw(self._rngs["prompts"], size)
        outputs = self._outputs.draw(self._rngs["outputs"], size)
        if self._prefix is None:
            return map(Request, counting(serial), times.tolist(), prompts.tolist(), outputs.tolist(), repeat(()))
        groups = self._prefix.draw(self._rngs["prefixes"], size)
        prompts = prompts + np.where(groups < self._prefix.groups, self._prefix.tokens, 0)
        hashes = map(self._prefix.hashes.__getitem__, groups.tolist())
        return map(Request, counting(serial), times.tolist(), prompts.tolist(), outputs.tolist(), hashes)
