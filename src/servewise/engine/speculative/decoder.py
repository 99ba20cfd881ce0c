"""Decoding by rounds of draft and verification; without a draft, plain decoding by the same code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter

from servewise.engine.sampling.sampler import random_stream
from servewise.engine.sampling_settings import SamplingSettings
from servewise.engine.speculative.acceptance import AcceptanceCounts
from servewise.engine.speculative.cached_model import CachedModel
from servewise.engine.speculative.draft_length import DraftLength, FixedLength
from servewise.engine.speculative.lane import Draft, Lane, Proposal
from servewise.engine.speculative.round import Round
from servewise.engine.speculative.verification import NOT_FINITE, judged, verify
from servewise.errors import InputError, RunFailed

PLAIN = FixedLength(0)


@dataclass(frozen=True, slots=True)
class Request:
    """A prompt's token ids and how to go on from there."""

    prompt: tuple[int, ...]
    settings: SamplingSettings


class SpeculativeDecoder:
    """``target`` with a ``draft`` (None: plain decoding), K by ``length``; lanes come and go between rounds.

    A lane's output depends on its own settings and seed alone, not on the others. ``seed`` serves requests that bring
    none. ``rounds`` is the log; ``clock`` counts seconds, ``waited`` those that threads have waited for a core. Stop
    strings and log probabilities are the running engine's and are refused here.
    """

    def __init__(
        self,
        target: CachedModel,
        draft: Draft | None = None,
        length: DraftLength = PLAIN,
        *,
        seed: int = 0,
        clock: Callable[[], float] = perf_counter,
        waited: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self.target, self.draft, self.length = target, draft, length
        self.lanes: list[Lane] = []
        self.rounds: list[Round] = []
        self._seed, self._clock, self._began, self._waited = seed, clock, clock(), waited
        self._serial = 0

    def admit(self, request: Request) -> Lane | None:
        """Take in a request: its prompt is computed and its first token chosen. None: there is no room now.

        Raises InputError for a prompt that is empty, has unknown tokens or does not fit, and for settings that are not
        read here. The lane may have ended at once (``ended``).
        """
        lane = self._lane(request)
        start_s = self._clock()
        if not self._enter(lane):
            return None
        prompt = len(lane.tokens)
        tokens = judged(self.target.prefill(lane.serial, lane.tokens, wanted=1), lane, Proposal())
        self._take(lane, tokens)
        seconds = self._clock() - start_s
        self.rounds.append(Round(start_s - self._began, 0.0, seconds, 1, 0, 0, 1, prompt, 0))
        self.lanes.append(lane)
        return lane

    def advance(self) -> None:
        """One round over all lanes that have not ended."""
        lanes = [lane for lane in self.lanes if not self.ended(lane)]
        k = self.length.choose(len(lanes)) if self.draft else 0
        asked = [max(min(k, lane.remaining - 1), 0) for lane in lanes]
        context = sum(len(lane.tokens) for lane in lanes)
        waited_s = self._waited()
        start_s = self._clock()
        proposals = self.proposals(lanes, asked)
        drafted_s = self._clock()
        gains = verify(self.target, lanes, proposals)
        emitted = sum(self._gain(*each) for each in zip(lanes, gains, strict=True))
        end_s = self._clock()
        self._count(lanes, asked, proposals, gains)
        offered = sum(len(each.tokens) for each in proposals)
        times = (start_s - self._began, drafted_s - start_s, end_s - drafted_s)
        self.rounds.append(Round(*times, len(lanes), k, offered, emitted, 0, context, self._waited() - waited_s))

    def proposals(self, lanes: Sequence[Lane], asked: Sequence[int]) -> list[Proposal]:
        """The draft's tokens for each lane."""
        if self.draft is None or not any(asked):
            return [Proposal()] * len(lanes)
        return self.draft.propose(lanes, asked)

    def ended(self, lane: Lane) -> bool:
        """Whether the lane needs no further round."""
        end = self.target.model.config.end_tokens
        at_end = not lane.settings.ignore_end and len(lane.tokens) > lane.prompt_tokens and lane.tokens[-1] in end
        return lane.error is not None or lane.remaining <= 0 or at_end

    def release(self, lane: Lane) -> None:
        """Take the lane out, ended or not."""
        self.lanes.remove(lane)
        if lane.error is not None:
            self.target.clear(lane.serial)
        self.target.release(lane.serial)
        if self.draft is not None:
            self.draft.release(lane)

    def _lane(self, request: Request) -> Lane:
        config, settings, prompt = self.target.model.config, request.settings, request.prompt
        if settings.stop or settings.logprobs is not None:
            raise InputError("stop strings and logprobs are not read here", hint="use the running engine")
        if not prompt or not all(0 <= token < config.vocabulary for token in prompt):
            raise InputError("a prompt must hold tokens of the model's vocabulary, at least one", where="prompt")
        if len(prompt) >= config.max_context_tokens:
            what = f"{len(prompt)} tokens leave no room for a reply in a context of {config.max_context_tokens}"
            raise InputError(what, where="prompt", hint="shorten it")
        self._serial += 1
        seed = settings.seed if settings.seed is not None else (self._seed << 32) + self._serial
        return Lane(
            serial=self._serial,
            tokens=list(prompt),
            prompt_tokens=len(prompt),
            most_tokens=min(len(prompt) + settings.max_tokens, config.max_context_tokens),
            settings=settings,
            seed=seed,
            rng=random_stream(seed),
        )

    def _enter(self, lane: Lane) -> bool:
        if not self.target.admit(lane.serial, lane.most_tokens):
            return False
        if self.draft is not None and not self.draft.admit([lane]):
            self.target.release(lane.serial)
            return False
        return True

    def _gain(self, lane: Lane, tokens: tuple[int, ...] | None) -> int:
        before = len(lane.tokens)
        self._take(lane, tokens)
        self.target.keep(lane.serial, len(lane.tokens) - 1)
        return len(lane.tokens) - before

    def _take(self, lane: Lane, tokens: tuple[int, ...] | None) -> None:
        """Append ``tokens`` up to the lane's end."""
        if tokens is None:
            lane.error = NOT_FINITE
        for token in tokens or ():
            if self.ended(lane):
                break
            lane.tokens.append(token)

    def _count(
        self,
        lanes: Sequence[Lane],
        asked: Sequence[int],
        proposals: Sequence[Proposal],
        gains: Sequence[tuple[int, ...] | None],
    ) -> None:
        counts = AcceptanceCounts()
        for lane, most, proposal, tokens in zip(lanes, asked, proposals, gains, strict=True):
            if most and tokens is not None:
                one = AcceptanceCounts()
                one.observe(most, len(proposal.tokens), len(tokens) - 1)
                lane.counts.add(one)
                counts.add(one)
        self.length.observe(counts)


def generate(decoder: SpeculativeDecoder, requests: Sequence[Request], slots: int) -> list[Lane]:
    """Every request's lane, ended, in their order; at most ``slots`` at once, a freed slot goes to the next.

    Raises RunFailed where the cache is too small for a request.
    """
    lanes: list[Lane] = []
    while len(lanes) < len(requests) or decoder.lanes:
        for lane in list(decoder.lanes):
            if decoder.ended(lane):
                decoder.release(lane)
        _fill(decoder, lanes, requests, slots)
        if any(not decoder.ended(lane) for lane in decoder.lanes):
            decoder.advance()
    return lanes


def _fill(decoder: SpeculativeDecoder, lanes: list[Lane], requests: Sequence[Request], slots: int) -> None:
    """Admit requests in their order while there are slots and room."""
    while len(lanes) < len(requests) and len(decoder.lanes) < slots:
        lane = decoder.admit(requests[len(lanes)])
        if lane is None:
            if not decoder.lanes:
                raise RunFailed("the KV cache is too small for one request")
            return
        lanes.append(lane)
