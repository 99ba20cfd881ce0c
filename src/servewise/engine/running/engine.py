"""The engine: a policy's steps carried out on a model, request by request.

A step is plan -> lay out -> model -> sample -> commit. The policy, its block pool and its prefix cache are the very
objects that the simulator drives; a property test holds their decisions equal. The engine adds block addresses, token
ids and a clock. It is single-threaded: call it from one thread, at any time between two steps, callbacks included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from collections.abc import Sequence as Tokens
from dataclasses import dataclass, replace
from math import nan
from time import perf_counter
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from servewise.batching.batch import Batch
from servewise.batching.policies import Policy
from servewise.batching.sequence import Sequence
from servewise.engine.checkpoint import Tokenizer
from servewise.engine.running.addresses import AddressedPool
from servewise.engine.running.generation import Emitted, Generation
from servewise.engine.running.hashes import block_hashes, next_hash
from servewise.engine.running.intake import output_limit, refusal, too_large
from servewise.engine.running.layout import Span, spans_of, step_input
from servewise.engine.running.recorder import Recorder
from servewise.engine.running.text import OutputText
from servewise.engine.sampling.sampler import Choice, random_stream, sample
from servewise.engine.sampling_settings import SamplingSettings
from servewise.engine.step import Model
from servewise.errors import InputError
from servewise.records.columns import CANCELLED, COMPLETED, FAILED, REJECTED, UNFINISHED, RequestColumns, StepColumns

NOT_FINITE = "the model's logits are not finite (NaN or infinity)"


@dataclass(frozen=True, slots=True)
class StepOutcome:
    """What a step did. ``batch`` None: there was nothing to run before an arrival or ``Engine.wake_s``."""

    batch: Batch | None
    emitted: tuple[Emitted, ...] = ()
    ended: tuple[Generation, ...] = ()


@runtime_checkable
class Clearable(Protocol):
    """A cache that can zero blocks, as one that holds floating point must."""

    def clear(self, blocks: tuple[int, ...]) -> None:
        """Zero these blocks."""
        ...


class Engine:
    """``model`` under ``policy``, with ``blocks`` KV blocks of ``block_tokens`` tokens.

    Prefixes are shared where the policy has a prefix cache, by hashes with ``salt``. ``tokenizer`` gives replies their
    text and stop strings. ``seed`` draws the seeds of requests that bring none. ``clock`` counts seconds.
    """

    def __init__(
        self,
        model: Model,
        policy: Policy,
        *,
        blocks: int,
        block_tokens: int = 16,
        tokenizer: Tokenizer | None = None,
        seed: int = 0,
        salt: bytes = b"",
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        self.model = model
        self.slots = policy.slots
        cached = bool(getattr(policy, "prefix_cache", False))
        self.pool = AddressedPool(blocks, block_tokens, block_tokens if cached else None)
        self.cache = model.new_cache(blocks, block_tokens)
        self._device = getattr(model, "device", torch.device("cpu"))
        self._batcher = policy.batcher(self.pool, model.config.window_tokens)
        if getattr(self._batcher, "moves_kv", False):
            raise InputError("the engine moves no KV to the host", where="policy", hint="preempt by recompute")
        self._tokenizer = tokenizer
        self._end_tokens = frozenset(model.config.end_tokens)
        self._salt = salt
        self._seeds = np.random.default_rng(seed)
        self._clock = clock
        self._started = clock()
        self._recorder = Recorder()
        self._serial = 0
        self._live: dict[int, Generation] = {}  # neither ended nor refused
        self._running: dict[int, Generation] = {}  # admitted, blocks held, in order of admission
        self._spoiled: dict[int, tuple[int, ...]] = {}  # failed, blocks held: their tables

    @property
    def now_s(self) -> float:
        """Seconds since the engine's start."""
        return self._clock() - self._started

    @property
    def idle(self) -> bool:
        """Whether no request waits or runs."""
        return not self._live

    @property
    def waiting(self) -> int:
        """Requests that wait for admission."""
        return self._batcher.waiting_count

    @property
    def running(self) -> int:
        """Requests that hold a row and blocks."""
        return len(self._running)

    @property
    def requests(self) -> RequestColumns:
        """The records of the requests that have ended."""
        return self._recorder.requests

    @property
    def steps(self) -> StepColumns:
        """The records of the steps that have run."""
        return self._recorder.steps

    def new_records(self) -> None:
        """Begin new records; those so far stay with who holds them. A server that runs for days calls it."""
        self._recorder = Recorder()

    def wake_s(self) -> float:
        """When a step can run though nothing arrives; infinity: only an arrival brings one, or ``close``."""
        return self._batcher.wake_s()

    def close(self) -> None:
        """No more requests will come: a policy that waits for a full batch need not."""
        self._batcher.close()

    def submit(
        self,
        prompt: Tokens[int],
        settings: SamplingSettings,
        *,
        on_token: Callable[[Emitted], None] | None = None,
        on_end: Callable[[Generation], None] | None = None,
        arrival_s: float | None = None,
        serial: int | None = None,
    ) -> Generation:
        """Queue a request that came at ``arrival_s`` (None: now); returns its handle, ``serial`` its id (None: next).

        ``on_token`` and ``on_end`` are called at the end of a step, when they may submit and cancel; they must not
        raise. A reply ends at the model's context even if ``max_tokens`` would go on.

        Raises InputError, after recording the request as rejected, where it can never run: an empty prompt, a token
        that the model does not know, a prompt that fills the context, more KV than the pool holds, a stop string
        without a tokenizer; and for a ``serial`` that is under way.
        """
        serial = self._serial if serial is None else serial
        if serial in self._live:
            raise InputError(f"a request with the serial {serial} is under way", hint="give each its own")
        self._serial = max(self._serial, serial + 1)
        seed = settings.seed if settings.seed is not None else int(self._seeds.integers(1 << 63))
        limit = output_limit(len(prompt), settings, self.model.config)
        generation = Generation(serial, prompt, limit, replace(settings, seed=seed), random_stream(seed))
        generation.arrival_s = self.now_s if arrival_s is None else arrival_s
        generation.on_token, generation.on_end = on_token, on_end
        refused = self._queue(generation)
        if refused is not None:
            generation.finish_reason, generation.error = "rejected", str(refused)
            self._end(generation, REJECTED, generation.arrival_s)
            raise refused
        self._live[serial] = generation
        return generation

    def _queue(self, generation: Generation) -> InputError | None:
        """Hand a request to the policy; why it can never run, if so."""
        prompt, settings, tokenizer = generation.tokens, generation.settings, self._tokenizer
        refused = refusal(prompt, settings, self.model.config, has_tokenizer=tokenizer is not None)
        if refused is not None:
            return refused
        if self.pool.hash_block_tokens is not None:
            generation.block_hashes = block_hashes(prompt, self.pool.hash_block_tokens, self._salt)
        if tokenizer is not None:
            generation.output_text = OutputText(tokenizer.decode, prompt, settings.stop)
        if not self._batcher.add(generation, generation.arrival_s):
            return too_large(generation.total_tokens, self.pool.capacity_tokens)
        return None

    def cancel(self, serial: int) -> bool:
        """End a request wherever it is; its blocks are free at once (a static batch holds its row). False: no such."""
        generation = self._live.get(serial)
        if generation is None:
            return False
        self._take_out(generation, CANCELLED)
        return True

    def abandon(self) -> None:
        """End all that waits or runs, recorded as unfinished: the run stops here."""
        for generation in list(self._live.values()):
            if not generation.done:
                self._take_out(generation, UNFINISHED)

    def _take_out(self, generation: Generation, status: int) -> None:
        generation.finish_reason = "cancelled"
        now_s = self.now_s
        self._end(generation, status, now_s)
        ended = self._released(self._batcher.finish(generation), now_s)
        _tell((), [generation, *ended])

    def run_until_idle(self) -> None:
        """Step until every request has ended; no more will come, apart from callbacks."""
        self.close()
        while not self.idle:
            self.step()

    def step(self) -> StepOutcome:
        """Run the next step. After an exception from the model the engine is as before: the step may be tried again."""
        start_s = self.now_s
        batch = self._batcher.plan(start_s)
        if batch is None:
            return StepOutcome(None)
        waiting = self._batcher.waiting_count
        spans = self._spans(batch, start_s)
        step = step_input(spans, self.pool, self._device)
        laid_out_s = self.now_s
        logits = self.model.step(step, self.cache)
        computed_s = self.now_s
        chosen = _choose(logits, spans)
        sampled_s = self.now_s
        emitted = [each for generation, choice in chosen if (each := self._take(generation, choice, sampled_s))]
        ended = self._commit(batch, [generation for generation, _ in chosen], sampled_s)
        self._recorder.stepped(batch, waiting, (start_s, laid_out_s, computed_s, sampled_s, self.now_s))
        _tell(emitted, ended)
        return StepOutcome(batch, tuple(emitted), tuple(ended))

    def _spans(self, batch: Batch, now_s: float) -> list[Span]:
        """The step's spans, with blocks for them all."""
        for sequence in batch.preempted:
            self._running.pop(sequence.serial).leave(now_s)
        for sequence in batch.admitted:
            generation = self._live[sequence.serial]
            self._running[sequence.serial] = generation
            generation.enter(now_s)
        spans = spans_of(batch, self._running.values())
        self.pool.cover((span.generation, span.start + span.new_tokens) for span in spans)
        return spans

    def _take(self, generation: Generation, choice: Choice | None, now_s: float) -> Emitted | None:
        """Note the chosen token, and the reply's end if it is one; None: there is nothing to tell."""
        if generation.done:
            return None
        if choice is None:
            generation.finish_reason, generation.error = "failed", NOT_FINITE
            self._spoiled[generation.serial] = self.pool.table(generation)
            return None
        text = generation.take(choice, now_s, self._end_tokens)
        self._hash_answer(generation)
        return Emitted(generation, choice, text, generation.finish_reason)

    def _hash_answer(self, generation: Generation) -> None:
        """Name the block that the newest token filled, if it did: a later prompt may begin with prompt and reply."""
        size, tokens = self.pool.hash_block_tokens, generation.tokens
        if size is not None and len(tokens) % size == 0:
            hashes = generation.block_hashes
            generation.block_hashes = (*hashes, next_hash(hashes, tokens[-size:], self._salt))

    def _commit(self, batch: Batch, sampled: Iterable[Generation], now_s: float) -> list[Generation]:
        """Commit the step and take out the replies that ended early; returns the requests that ended."""
        ended = self._released(self._batcher.commit(batch, 1), now_s)
        for generation in sampled:
            if generation.error and not generation.done:
                self._end(generation, FAILED, now_s)
                ended.append(generation)
            if generation.join and generation.finish_reason is not None:
                ended += self._released(self._batcher.finish(generation), now_s)
        return ended

    def _released(self, sequences: Iterable[Sequence], now_s: float) -> list[Generation]:
        """The policy let go of ``sequences``; returns those that end with that."""
        ended = []
        for sequence in sequences:
            assert isinstance(sequence, Generation), "the engine adds only generations"
            self._running.pop(sequence.serial, None)
            if sequence.serial in self._spoiled:
                self._cleanse(sequence)
            if not sequence.done:
                self._end(sequence, FAILED if sequence.error else COMPLETED, now_s)
                ended.append(sequence)
        return ended

    def _cleanse(self, generation: Generation) -> None:
        """Free a failed request's blocks of what is no number: masked attention still multiplies it."""
        self.pool.discard(generation.block_hashes)
        freed = self.pool.free_among(self._spoiled.pop(generation.serial))
        if freed and isinstance(self.cache, Clearable):
            self.cache.clear(freed)

    def _end(self, generation: Generation, status: int, now_s: float) -> None:
        generation.status = status
        generation.end_s = now_s if status != UNFINISHED else nan
        self._live.pop(generation.serial, None)
        self._recorder.ended(generation)


def _choose(logits: Tensor, spans: Iterable[Span]) -> list[tuple[Generation, Choice | None]]:
    """The next token of each span that samples; None: its logits are not finite."""
    wanted = [span for span in spans if span.wanted]
    rows = [row for row, span in enumerate(wanted) if span.samples]
    sampling = [wanted[row].generation for row in rows]
    chosen = sample(logits if len(rows) == len(wanted) else logits[rows], [each.row() for each in sampling])
    return list(zip(sampling, chosen, strict=True))


def _tell(emitted: Iterable[Emitted], ended: Iterable[Generation]) -> None:
    for each in emitted:
        if each.generation.on_token is not None:
            each.generation.on_token(each)
    for generation in ended:
        if generation.on_end is not None:
            generation.on_end(generation)
