"""The survey: acceptance first, then costs, then speeds; each part goes into the journal as it comes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice
from typing import Any

import numpy as np

from servewise.engine.decoder.decoder import Decoder
from servewise.engine.sampling_settings import SamplingSettings
from servewise.engine.speculative.cached_model import CachedModel
from servewise.engine.speculative.costs import MeasuredCosts, RoundTimer
from servewise.engine.speculative.decoder import Request, SpeculativeDecoder
from servewise.engine.speculative.draft_length import DraftLength, FixedLength, MeasuredLength
from servewise.probe.speculate.acceptance import Replays, judge_every_token, offer_chances
from servewise.probe.speculate.costs import batch_costs, time_rounds
from servewise.probe.speculate.draft_spec import DraftSpec, make_draft
from servewise.probe.speculate.journal import Journal
from servewise.probe.speculate.speed import measure_speed
from servewise.probe.speculate.stopwatch import Stopwatch

BLOCK_TOKENS = 16
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What is surveyed. ``speed_prompts``: prompts of a speed run at least; a batch takes two for each slot."""

    max_k: int
    batches: tuple[int, ...]
    max_tokens: int
    temperature: float
    repeats: int
    speed_prompts: int
    acceptance_only: bool
    seed: int

    def timed(self, batch: int, prompts: int) -> list[int]:
        """Which of ``prompts`` a speed run at ``batch`` decodes: evenly spread, repeated where there are too few."""
        wanted = max(self.speed_prompts, 2 * batch if batch > 1 else 1)
        return [place * prompts // wanted for place in range(wanted)]


@dataclass(slots=True)
class Findings:
    """What was measured: drafts judged by prompt and token; timed rounds by batch and visit; speeds by repeat.

    ``speeds``: of each (batch, K).
    ``adaptive``: speeds by batch where K followed the measured acceptance.
    """

    replies: list[list[list[int]]] = field(default_factory=list)
    rounds: dict[int, list[Any]] = field(default_factory=dict)
    speeds: dict[tuple[int, int], list[dict[str, Any]]] = field(default_factory=dict)
    adaptive: dict[int, list[dict[str, Any]]] = field(default_factory=dict)


class Survey:
    """``target`` with the drafts of ``spec`` (``model`` drafts, None for n-grams) on ``prompts``."""

    def __init__(
        self,
        target: Decoder,
        spec: DraftSpec,
        model: Decoder | None,
        prompts: Sequence[tuple[int, ...]],
        scope: Scope,
        journal: Journal,
        stopwatch: Stopwatch,
    ) -> None:
        self._target, self._spec, self._model, self._prompts = target, spec, model, prompts
        self._scope, self._journal, self._stopwatch = scope, journal, stopwatch

    def run(self, progress: Progress | None = None) -> Findings:
        """All parts, those in the journal taken from there."""
        findings, parts = Findings(), list(self._parts())
        for done, part in enumerate(parts, start=1):
            part.keep(findings, self._journal.get(part.key, lambda part=part: part.measure(findings)))  # type: ignore[misc]
            if progress is not None:
                progress(done, len(parts))
        return findings

    def _parts(self) -> Iterator[Part]:
        slots = max(self._scope.batches)
        for start in range(0, len(self._prompts), slots):
            yield self._acceptance_part(start, slots)
        if self._scope.acceptance_only:
            return
        for repeat in range(self._scope.repeats):
            for batch in self._scope.batches:
                yield self._costs_part(batch, repeat)
        for repeat in range(self._scope.repeats):
            for batch in self._scope.batches:
                order = np.random.default_rng([self._scope.seed, 2, repeat, batch]).permutation(self._scope.max_k + 1)
                for k in order.tolist():
                    yield self._speed_part(batch, k, repeat)
                yield self._adaptive_part(batch, repeat)

    def _acceptance_part(self, start: int, slots: int) -> Part:
        """Whether drafts stand, judged at every token of the replies to ``slots`` prompts from ``start`` on."""
        max_k = self._scope.max_k

        def measure(_: Findings) -> Any:
            requests = self._requests(self._prompts[start : start + slots])
            return judge_every_token(self._decoder(FixedLength(0), requests, slots, draft=True), requests, max_k)

        def keep(findings: Findings, value: Any) -> None:
            findings.replies += value

        return Part(("acceptance", start), measure, keep)

    def _costs_part(self, batch: int, repeat: int) -> Part:
        """What the passes of a round cost at ``batch``."""

        def measure(findings: Findings) -> Any:
            """Rounds timed with every sequence half way through its reply, at chances as the replies had."""
            rng = np.random.default_rng([self._scope.seed, 1, batch, repeat])
            requests = [self._half_way(each) for each in self._requests(list(islice(cycle(self._prompts), batch)))]
            capacity = self._capacity(requests, batch)
            timer = RoundTimer(
                CachedModel(self._target, capacity, BLOCK_TOKENS, self._target.device),
                make_draft(self._spec, self._model, capacity),
                requests,
                rng=rng,
                clock=self._stopwatch.clock,
                waited=self._stopwatch.waited,
            )
            counts = Replays(findings.replies, self._scope.max_k).total()
            return time_rounds(timer, [offer_chances(each) for each in counts], rng)

        def keep(findings: Findings, value: Any) -> None:
            findings.rounds.setdefault(batch, []).append(value)

        return Part(("costs", batch, repeat), measure, keep)

    def _speed_part(self, batch: int, k: int, repeat: int) -> Part:
        """Tokens a second at ``batch`` with ``k`` tokens drafted."""

        def measure(_: Findings) -> Any:
            requests = self._speed_requests(batch)
            return measure_speed(self._decoder(FixedLength(k), requests, batch, draft=k > 0), requests, batch)

        def keep(findings: Findings, value: Any) -> None:
            findings.speeds.setdefault((batch, k), []).append(value)

        return Part(("speed", batch, k, repeat), measure, keep)

    def _adaptive_part(self, batch: int, repeat: int) -> Part:
        """The same with a length chosen as it goes, by the costs that were found."""

        def measure(findings: Findings) -> Any:
            costs = MeasuredCosts((batch_costs(batch, findings.rounds[batch], self._scope.max_k),))
            requests = self._speed_requests(batch)
            return measure_speed(
                self._decoder(MeasuredLength(costs, self._scope.max_k), requests, batch, draft=True), requests, batch
            )

        def keep(findings: Findings, value: Any) -> None:
            findings.adaptive.setdefault(batch, []).append(value)

        return Part(("adaptive", batch, repeat), measure, keep)

    def _speed_requests(self, batch: int) -> list[Request]:
        return self._requests([self._prompts[place] for place in self._scope.timed(batch, len(self._prompts))])

    def _decoder(
        self, length: DraftLength, requests: Sequence[Request], slots: int, *, draft: bool
    ) -> SpeculativeDecoder:
        capacity = self._capacity(requests, slots)
        return SpeculativeDecoder(
            CachedModel(self._target, capacity, BLOCK_TOKENS, self._target.device),
            make_draft(self._spec, self._model, capacity) if draft else None,
            length,
            seed=self._scope.seed,
            clock=self._stopwatch.clock,
            waited=self._stopwatch.waited,
        )

    def _capacity(self, requests: Sequence[Request], slots: int) -> int:
        """Tokens of cache that ``slots`` of the longest requests take, drafts of full length included."""
        most = max(len(each.prompt) for each in requests) + self._scope.max_tokens + self._scope.max_k + 1
        return slots * (-(-most // BLOCK_TOKENS) * BLOCK_TOKENS)

    def _requests(self, prompts: Sequence[tuple[int, ...]]) -> list[Request]:
        scope = self._scope
        settings = [
            SamplingSettings(temperature=scope.temperature, max_tokens=scope.max_tokens, seed=scope.seed + place)
            for place in range(len(prompts))
        ]
        return [Request(prompt, each) for prompt, each in zip(prompts, settings, strict=True)]

    def _half_way(self, request: Request) -> Request:
        """The request as it stands half-way through its reply; the reply's tokens are the prompt's again."""
        room = self._target.config.max_context_tokens - len(request.prompt) - self._scope.max_k - 2
        more = tuple(islice(cycle(request.prompt), max(min(self._scope.max_tokens // 2, room), 0)))
        return Request((*request.prompt, *more), request.settings)


@dataclass(frozen=True, slots=True)
class Part:
    """One thing to measure: its name in the journal, how it is measured, where its value belongs."""

    key: tuple[str | int, ...]
    measure: Callable[[Findings], Any]
    keep: Callable[[Findings, Any], None]
