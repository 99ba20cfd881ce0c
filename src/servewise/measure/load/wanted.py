"""The load that a user asks for, and its schedule at one concurrency, at one rate, or by a trace."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial

from servewise.errors import InputError
from servewise.measure.load.asks import MadeAsks
from servewise.measure.load.bodies import Form
from servewise.measure.load.closed import ClosedSchedule
from servewise.measure.load.open import OpenSchedule
from servewise.measure.load.prompt import TokenIds
from servewise.measure.load.prompt_file import FileAsks, FilePrompt
from servewise.measure.load.prompts import Prompts
from servewise.measure.load.retry import RetryRule, RetrySchedule
from servewise.measure.load.sessions import SessionSchedule, Talk
from servewise.measure.load.supply import Supply
from servewise.measure.load.thinking import NO_THINKING, Thinking
from servewise.measure.schedule import Schedule
from servewise.workload import checks
from servewise.workload.lengths import Fixed, Lengths
from servewise.workload.notation import written_arrivals
from servewise.workload.prefix import SharedPrefix
from servewise.workload.synthetic import ClosedLoop, Synthetic
from servewise.workload.traces.trace import Trace

Workload = Synthetic | ClosedLoop | Trace


@dataclass(frozen=True, slots=True)
class Conversations:
    """Every request of a load opens a conversation of so many ``turns``.

    Later questions are ``input_tokens`` long; the load's other lengths hold for the first question and all replies.
    ``context_tokens`` ends a conversation that would outgrow it.
    """

    turns: Lengths
    input_tokens: Lengths
    context_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadWanted:
    """What the conditions of a bench have in common.

    Lengths, the shared prefix and the arrival process are those of ``workload``, so that the same load can be
    simulated. ``requests`` and ``duration_s`` end a run (whichever is first; a closed loop without ``requests`` goes on
    until its sender is told to stop). ``arrivals`` is the notation of ``workload.notation``; ``trace`` replaces
    arrivals and lengths, ``file_prompts`` the texts (and lengths where they set their own). ``thinking`` comes between
    a closed loop's requests and a conversation's turns. ``max_in_flight`` caps an open loop, ``retries`` repeats a 429.
    """

    input_tokens: Lengths = field(default_factory=lambda: Fixed(512))
    output_tokens: Lengths = field(default_factory=lambda: Fixed(128))
    requests: int | None = None
    duration_s: float | None = None
    arrivals: str = "poisson"
    prefix: SharedPrefix | None = None
    trace: Trace | None = None
    file_prompts: tuple[FilePrompt, ...] = ()
    conversations: Conversations | None = None
    thinking: Thinking = NO_THINKING
    stagger_s: float = 0.0
    max_in_flight: int | None = None
    retries: RetryRule | None = None

    def __post_init__(self) -> None:
        if self.file_prompts and (self.trace is not None or self.prefix is not None):
            raise InputError("prompts from a file have neither a trace's lengths nor a shared prefix made for them")

    @property
    def needs_text(self) -> bool:
        """Whether its sender must keep the texts of answers."""
        return self.conversations is not None

    def workload(self, *, concurrency: int | None = None, rate_per_s: float | None = None) -> Workload:
        """The workload at that concurrency or that rate; a trace at its own where none is given."""
        if concurrency is not None and rate_per_s is not None:
            raise InputError("a load is closed (a concurrency) or open (a rate), not both")
        if concurrency is not None:
            return self._closed(concurrency)
        if self.trace is not None:
            trace = self.trace if self.requests is None else self.trace.tiled(self.requests)
            return trace if rate_per_s is None else trace.at_rate(rate_per_s)
        return Synthetic(
            arrivals=written_arrivals(self.arrivals, rate_per_s, where="arrivals"),
            prompt_lengths=self.input_tokens,
            output_lengths=self.output_tokens,
            count=self.requests,
            duration_s=self.duration_s,
            prefix=self._prefix(),
        )

    def _closed(self, concurrency: int) -> ClosedLoop:
        if self.trace is not None:
            raise InputError("a trace has times of its own", hint="give a rate, or leave out the concurrency")
        count = checks.MAX_TOKENS if self.requests is None else self.requests
        lengths = self.input_tokens, self.output_tokens
        return ClosedLoop(concurrency, self.thinking.mean_s, *lengths, count, self._prefix())

    def _prefix(self) -> SharedPrefix | None:
        """The prefix as one block, so that all of its tokens are shared."""
        return self.prefix and replace(self.prefix, block_tokens=self.prefix.tokens)


def schedule_for(
    wanted: LoadWanted,
    prompts: Prompts,
    form: Form,
    *,
    seed: int,
    concurrency: int | None = None,
    rate_per_s: float | None = None,
) -> Schedule:
    """The schedule of ``wanted`` at one condition: a concurrency, a rate, or neither for a trace at its own rate."""
    load = wanted.workload(concurrency=concurrency, rate_per_s=rate_per_s)
    source = partial(load.shapes if isinstance(load, ClosedLoop) else load.requests, seed)
    given = wanted.file_prompts
    supply = Supply(source, FileAsks(given, form) if given else MadeAsks(prompts, form, load.hash_block_tokens))
    thinking = replace(wanted.thinking, seed=seed)
    schedule: Schedule
    if isinstance(load, ClosedLoop):
        schedule = ClosedSchedule(supply, load.concurrency, thinking=thinking, stagger_s=wanted.stagger_s)
    else:
        schedule = OpenSchedule(supply, max_in_flight=wanted.max_in_flight)
    if wanted.conversations is not None:
        schedule = SessionSchedule(schedule, _talk(wanted, wanted.conversations, prompts, thinking))
    return schedule if wanted.retries is None else RetrySchedule(schedule, wanted.retries)


def _talk(wanted: LoadWanted, every: Conversations, prompts: Prompts, thinking: Thinking) -> Talk:
    if isinstance(prompts.material, TokenIds) or any(each.prompt.is_ids for each in wanted.file_prompts):
        raise InputError("a conversation cannot be made of token ids", hint="use words")
    return Talk(
        turns=every.turns,
        input_tokens=every.input_tokens,
        output_tokens=wanted.output_tokens,
        prompts=prompts,
        sessions=wanted.requests or (checks.MAX_TOKENS if wanted.trace is None else len(wanted.trace)),
        seed=thinking.seed,
        thinking=thinking,
        context_tokens=every.context_tokens,
    )
