"""From options on speculation to a ``Speculation`` of the deployment, with what a reader must know."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any, cast

from servewise.ask.names import model_named
from servewise.ask.numbers import finite, share, whole
from servewise.batching.policies import Policy
from servewise.batching.speculative.acceptance import MOST_DRAFTED, Acceptance
from servewise.batching.speculative.policy import Groupable, LengthMaker, Speculative
from servewise.batching.speculative.tally import Tally
from servewise.caveats import Caveat, unique
from servewise.deployment.capacity import KvCapacity
from servewise.deployment.deployment import Deployment
from servewise.deployment.formats import engine_formats
from servewise.errors import InputError, UnknownName
from servewise.plan.clock import clock_for
from servewise.simulate.speculating.drafters import Drafter, DraftModel, Heads, HostTime, Ngram
from servewise.simulate.speculating.memory import NOTHING, blocks_left, taken_by
from servewise.simulate.speculating.one_layer import EAGLE3_VOCABULARY, eagle, medusa_head, multi_token_prediction
from servewise.simulate.speculating.speculation import Speculation, best, fixed, measured, until_batch
from servewise.steptime.api import KINDS
from servewise.steptime.estimator import Estimator

METHODS = ("draft:MODEL", "ngram", "eagle", "eagle3", "mtp", "medusa")
ONE_LAYER = ("eagle", "eagle3", "mtp")
LENGTHS = ("fixed", "best", "measured")
DEFAULT_DRAFT_TOKENS = 3
BATCHWISE = ("static", "dynamic")
INDEPENDENT = Caveat(
    "independent-acceptance",
    "draft tokens stand by chance, at the rates given for each position, whatever the request and its text",
    "give rates by position, as your engine logs them for your traffic",
)
HOST_TIME = Caveat(
    "drafting-on-the-host",
    "the engine's own time to draft and to verify is left out: vLLM and SGLang of early 2025 took 0.7 to 1.2 ms a "
    "draft pass and up to 0.15 ms a sequence (fitted to published speed-ups), vLLM 0.11.2 hardly any",
    "give --draft-overhead, or measure the speed-up at batch 1 and compare",
)
TO_VERIFY = Caveat(
    HOST_TIME.code,
    "the engine's own time to verify is left out; its time to draft is as given",
    "measure the speed-up at batch 1 and compare",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeculationOptions:
    """What ``simulate`` and ``fleet`` take; ``speculate`` None: nobody drafts.

    ``speculate``: ``draft:MODEL``, ``ngram``, ``eagle``, ``eagle3``, ``mtp`` or ``medusa``. ``draft_tokens``: K, or the
    most where ``draft_length`` is ``best`` (by the estimator at the batch as it is) or ``measured`` (by the acceptance
    that the run shows). ``acceptance``: one rate, or one a position given that those before stood, the last for all
    later. ``speculate_until_batch``: none above so many decoding sequences. ``hit_rate``: how often an n-gram finds a
    match. ``draft_overhead`` [s]: the engine's own time for each pass of the draft.
    """

    speculate: str | None = None
    acceptance: float | str | Iterable[float] | None = None
    draft_tokens: int = DEFAULT_DRAFT_TOKENS
    draft_length: str = "fixed"
    speculate_until_batch: int | None = None
    hit_rate: float = 1.0
    draft_overhead: float = 0.0

    @property
    def model(self) -> str:
        """The draft model's name or file; empty: it has none of its own."""
        return str(self.speculate or "").partition(":")[2]


@dataclass(frozen=True, slots=True)
class Speculating:
    """A speculation with the caveats of its figures."""

    speculation: Speculation
    caveats: tuple[Caveat, ...]

    def blocks(self, capacity: KvCapacity) -> int:
        """Blocks of the KV pool with the draft beside the target."""
        return blocks_left(capacity, self.speculation.taken)

    def policy(self, policy: Policy, seed: int = 0) -> Speculative:
        """``policy`` with speculating sequences; InputError for one that runs whole batches."""
        if policy.name in BATCHWISE:
            raise InputError(f"{policy.name} batching does not speculate here", where="speculate", hint="continuous")
        return self.speculation.policy(cast("Groupable", policy), seed)


def drafting_of(
    deployment: Deployment, clock: Estimator, options: SpeculationOptions, estimator: str | None = None
) -> Speculating | None:
    """How it speculates, None: nobody drafts; InputError for options that say how where nothing does."""
    if options.speculate is not None:
        return speculating(deployment, clock, options, estimator)
    asked = [each.name for each in fields(options) if getattr(options, each.name) != each.default]
    if asked:
        raise InputError("says how to speculate, but nothing does", where=asked[0], hint="give --speculate too")
    return None


def speculating(
    deployment: Deployment, clock: Estimator, options: SpeculationOptions, estimator: str | None = None
) -> Speculating:
    """What ``options`` describe, on the ``deployment`` that ``clock`` times; ``estimator`` names the draft's clock."""
    acceptance = _acceptance(options)
    whole(options.draft_tokens, "draft_tokens", most=MOST_DRAFTED)
    method, _, named = str(options.speculate).partition(":")
    drafter, draft, copies = _drafter(method.strip().lower(), named, deployment, options, estimator)
    speculation = Speculation(
        target=clock,
        drafter=drafter,
        acceptance=acceptance,
        length=_length(clock, drafter, acceptance, options),
        taken=taken_by(draft, copies) if draft is not None else NOTHING,
        words=_words(options, drafter, acceptance),
    )
    own = getattr(getattr(drafter, "estimator", None), "caveats", ())
    host = TO_VERIFY if options.draft_overhead else HOST_TIME
    return Speculating(speculation, unique((INDEPENDENT, host, *own)))


def speculation_row(tally: Tally) -> dict[str, Any]:
    """What a row tells of its first replicate's speculation."""
    return {
        "tokens_per_verification": tally.tokens_per_verification,
        "drafted_tokens": tally.drafted,
        "verifications": tally.verifications,
        "acceptance_by_position": tally.survival,
        "undrafted_tokens": tally.plain,
    }


def _acceptance(options: SpeculationOptions) -> Acceptance:
    given = options.acceptance
    if given is None:
        hint = "e.g. --acceptance 0.7 or, by position, 0.8,0.7,0.6"
        raise InputError("speculation needs the share of drafts that stand", where="acceptance", hint=hint)
    if isinstance(given, str):
        given = _numbers(given)
    rates = [given] if isinstance(given, (int, float)) else list(given)
    checked = tuple(float(share(each, "acceptance")) for each in rates)
    hit_rate = float(share(options.hit_rate, "hit_rate"))
    if hit_rate < 1 and not str(options.speculate).startswith("ngram"):
        raise InputError("is of an n-gram's lookup", where="hit_rate", hint="put it into the first acceptance")
    return Acceptance(checked, hit_rate)


def _numbers(text: str) -> list[float]:
    try:
        return [float(each) for each in text.split(",")]
    except ValueError:
        raise InputError(f"is no list of rates: {text!r}", where="acceptance", hint="e.g. 0.7 or 0.8,0.7,0.6") from None


def _drafter(
    method: str, named: str, target: Deployment, options: SpeculationOptions, estimator: str | None
) -> tuple[Drafter, Deployment | None, int]:
    """Who drafts, as what deployment (None: nothing on the accelerator), and how many of it."""
    host = HostTime(pass_s=_overhead(options.draft_overhead))
    if method == "ngram":
        return Ngram(host=host), None, 1
    if method == "medusa":
        draft = medusa_head(target)
        return Heads(_clock(draft, estimator), draft.model.name, host), draft, options.draft_tokens
    draft = _draft(method, named, target, options)
    return DraftModel(_clock(draft, estimator), draft.model.name, host), draft, 1


def head_of(target: Deployment, method: str) -> Deployment | None:
    """The one-layer draft that ``method`` (eagle, eagle3, mtp) trains beside ``target``; None for another name."""
    if method not in ONE_LAYER:
        return None
    return _draft(method, "", target, SpeculationOptions(speculate=method, acceptance=0.0))


def _overhead(seconds: float) -> float:
    if finite(seconds, "draft_overhead") < 0:
        raise InputError(f"must be zero or more, not {seconds!r}", where="draft_overhead")
    return float(seconds)


def _draft(method: str, named: str, target: Deployment, options: SpeculationOptions) -> Deployment:
    if method == "draft":
        return _beside(target, named)
    if method == "eagle":
        return eagle(target)
    if method == "eagle3":
        return eagle(target, draft_vocabulary=EAGLE3_VOCABULARY)
    if method != "mtp":
        raise UnknownName(
            "drafter", str(options.speculate), METHODS, where="speculate", hint=f"one of {', '.join(METHODS)}"
        )
    if not target.model.drafting_parameters:
        what = f"{target.model.name} has no multi-token prediction layer that is known"
        raise InputError(what, where="speculate", hint="eagle or eagle3 for a head trained beside it")
    return multi_token_prediction(target)


def _beside(target: Deployment, named: str) -> Deployment:
    """A draft model on the target's accelerators, split as it is, in formats as engines choose."""
    if not named:
        raise InputError("the draft model is missing", where="speculate", hint="e.g. draft:llama-3.2-1b")
    model = model_named(named)
    formats = engine_formats(model, target.accelerator, weights=None, kv=target.kv, activations=None)
    return replace(target, model=model, weights=formats.weights, kv=formats.kv, activations=formats.activations)


def _clock(draft: Deployment, estimator: str | None) -> Estimator:
    """The draft's clock: of the kind named; a file's steps are the target's, so then the usual one."""
    return clock_for(draft, estimator if estimator in KINDS else None)


def _length(clock: Estimator, drafter: Drafter, acceptance: Acceptance, options: SpeculationOptions) -> LengthMaker:
    k, most = options.draft_tokens, options.speculate_until_batch
    if options.draft_length not in LENGTHS:
        raise UnknownName("draft length", options.draft_length, LENGTHS, where="draft_length", hint=", ".join(LENGTHS))
    if most is not None:
        whole(most, "speculate_until_batch")
        if options.draft_length != "fixed":
            raise InputError("goes with a fixed draft length", where="speculate_until_batch", hint="leave one out")
        return until_batch(k, most)
    if options.draft_length == "best":
        return best(clock, drafter, acceptance, k)
    return fixed(k) if options.draft_length == "fixed" else measured(clock, drafter, k)


def _words(options: SpeculationOptions, drafter: Drafter, acceptance: Acceptance) -> str:
    """How it speculates, for conditions."""
    rates = ", ".join(f"{each:g}" for each in acceptance.by_position)
    upto = "" if options.draft_length == "fixed" else f" at most, {options.draft_length}"
    until = "" if options.speculate_until_batch is None else f", none above batch {options.speculate_until_batch}"
    hits = "" if acceptance.hit_rate == 1 else f", {acceptance.hit_rate:g} hits"
    host = "" if not options.draft_overhead else f", {options.draft_overhead * 1e3:g} ms a draft pass"
    return f"{options.draft_tokens} tokens{upto} drafted by {drafter.name}{until}, acceptance {rates}{hits}{host}"
