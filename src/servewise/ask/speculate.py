"""Does speculative decoding pay, with how many draft tokens, and what is left of it at large batch?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Unpack

from servewise.answer import Answer
from servewise.ask.deploying import Options, conditions_of, deploy
from servewise.ask.names import AcceleratorLike, ModelLike
from servewise.ask.numbers import finite, share, whole, wholes
from servewise.ask.speculating import HOST_TIME, head_of
from servewise.caveats import Caveat, unique
from servewise.conditions import Conditions
from servewise.deployment.deployment import Deployment
from servewise.errors import InputError
from servewise.plan.clock import clock_for
from servewise.steptime.estimator import Estimator
from servewise.steptime.shape import decode_shape
from servewise.steptime.verification import verification_seconds
from servewise.techniques.speculation import SpeculationRow, batched_rows, best_row, speculation_rows
from servewise.version import __version__

DEFAULT_MAX_K = 16
MOST_K = 256
DEFAULT_BATCHES = (1, 4, 16, 64)
DEFAULT_CONTEXT_TOKENS = 2048
SCANNED = tuple(2**power for power in range(11))
ACCEPTANCES = (0.5, 0.6, 0.7, 0.8, 0.9)
INDEPENDENT = Caveat(
    "independent-acceptance",
    "every draft token is taken as accepted alike, whatever its place and the text; real acceptance falls with depth",
    "measure acceptance by position on your own traffic",
)


def speculate(
    model: ModelLike | None = None,
    accelerator: AcceleratorLike | None = None,
    *,
    acceptance: float,
    draft: ModelLike | None = None,
    draft_cost: float | None = None,
    batch: int | Iterable[int] = DEFAULT_BATCHES,
    context: int = DEFAULT_CONTEXT_TOKENS,
    max_k: int = DEFAULT_MAX_K,
    estimator: str | None = None,
    **options: Unpack[Options],
) -> Answer:
    """The speed-up of decoding for each draft length up to ``max_k``, at an ``acceptance`` rate a draft token.

    Either ``draft_cost`` is given (a draft step over a target step; verifying is then as cheap as one step, an upper
    bound), or ``model`` with ``draft`` on ``accelerator``: then both step times and the verification of K + 1 tokens
    are estimated for each ``batch`` at ``context`` tokens, and the gain shrinks as the batch grows. ``draft`` may also
    be eagle, eagle3 or mtp, the layer that is trained beside the model. ``best_k`` 0 means that it does not pay;
    ``pays_until_batch`` is the largest batch tried, of the powers of two up to 1,024, at which some draft length does.
    """
    share(acceptance, "acceptance")
    whole(max_k, "max_k", most=MOST_K)
    if model is None:
        return _by_cost(acceptance, _checked_cost(draft_cost, draft), max_k)
    if draft_cost is not None:
        raise InputError("give either a model with a draft, or a draft cost", where="draft_cost")
    if draft is None:
        raise InputError(
            "the draft model is missing", where="draft", hint="name it with draft, or give draft_cost alone"
        )
    target = deploy(model, accelerator, **options)
    head = head_of(target, draft.strip().lower()) if isinstance(draft, str) else None
    small = head or deploy(draft, accelerator, **options)
    batches = tuple(whole(each, "batch", most=2**20) for each in wholes(batch, "batch"))
    whole(context, "context", least=max_k + 2, most=10**8)
    return _by_models(target, small, acceptance, batches, context, max_k, estimator)


def _checked_cost(draft_cost: float | None, draft: ModelLike | None) -> float:
    if draft_cost is None or draft is not None:
        raise InputError("give a draft cost, or a model with a draft", where="draft_cost", hint="e.g. 0.05")
    if finite(draft_cost, "draft_cost") < 0:
        raise InputError(f"must be zero or more, not {draft_cost!r}", where="draft_cost")
    return float(draft_cost)


def _by_cost(acceptance: float, draft_cost: float, max_k: int) -> Answer:
    found = speculation_rows(acceptance, draft_cost, max_k)
    message = "verifying K + 1 tokens is taken as one step: true while memory-bound, so an upper bound"
    return Answer(
        command="speculate",
        conditions=Conditions(
            hardware=f"any on which a draft step costs {draft_cost:g} of a target step",
            load="memory-bound (small batch)",
            lengths="any",
            precision="any",
            version=__version__,
        ),
        result={
            **_best(found),
            "acceptance": acceptance,
            "draft_cost": draft_cost,
            "rows": [each._asdict() for each in found],
            "by_acceptance": [
                {"acceptance": each, "draft_cost": draft_cost} | _best(speculation_rows(each, draft_cost, max_k))
                for each in _acceptances(acceptance)
            ],
        },
        caveats=(INDEPENDENT, Caveat("upper-bound", message, "give MODEL, --draft and --batch for step times")),
    )


def _by_models(
    target: Deployment,
    draft: Deployment,
    acceptance: float,
    batches: Sequence[int],
    context: int,
    max_k: int,
    estimator: str | None,
) -> Answer:
    clock, small = clock_for(target, estimator), clock_for(draft, estimator)

    def rows_at(a: float, batch: int) -> tuple[SpeculationRow, ...]:
        draft_step_s = small.seconds(decode_shape(batch, context, small.window_tokens))
        return batched_rows(a, draft_step_s=draft_step_s, verify_s=verification(clock, batch, context), max_k=max_k)

    by_batch = {batch: rows_at(acceptance, batch) for batch in batches}
    costs = {batch: _cost(clock, small, batch, context) for batch in batches}
    first = batches[0]
    return Answer(
        command="speculate",
        conditions=conditions_of(
            target,
            load=f"draft {draft.model.name}, batch {', '.join(map(str, batches))}",
            lengths=f"{context} tokens a sequence",
            estimator=clock.name,
        ),
        result={
            **_best(by_batch[first]),
            "acceptance": acceptance,
            "draft_cost": costs[first],
            "pays_until_batch": pays_until(rows_at, acceptance),
            "rows": [{"batch": batch} | each._asdict() for batch, found in by_batch.items() for each in found],
            "by_batch": [
                {"batch": batch, "draft_cost": costs[batch]} | _best(found) for batch, found in by_batch.items()
            ],
            "by_acceptance": [
                {"acceptance": each, "draft_cost": costs[first]} | _best(rows_at(each, first))
                for each in _acceptances(acceptance)
            ],
        },
        caveats=unique((INDEPENDENT, HOST_TIME, *clock.caveats, *small.caveats, *_losing(by_batch))),
    )


def pays_until(rows_at: Callable[[float, int], tuple[SpeculationRow, ...]], acceptance: float) -> int | None:
    """The largest batch of ``SCANNED`` at which some draft length pays; None where it pays at none of them."""
    return max((batch for batch in SCANNED if best_row(rows_at(acceptance, batch)).k), default=None)


def verification(clock: Estimator, batch: int, context: int) -> Callable[[int], float]:
    """Seconds of the target's pass over n tokens a sequence, the last at ``context``; one token is a plain step."""
    return lambda tokens: verification_seconds(clock, batch, tokens, batch * context)


def _cost(clock: Estimator, small: Estimator, batch: int, context: int) -> float:
    draft_s = small.seconds(decode_shape(batch, context, small.window_tokens))
    return draft_s / clock.seconds(decode_shape(batch, context, clock.window_tokens))


def _best(found: Sequence[SpeculationRow]) -> dict[str, Any]:
    best = best_row(found)
    return {"best_k": best.k, "speedup": best.speedup, "tokens_per_verification": best.tokens_per_verification}


def _acceptances(acceptance: float) -> list[float]:
    return sorted({*ACCEPTANCES, acceptance})


def _losing(by_batch: dict[int, tuple[SpeculationRow, ...]]) -> tuple[Caveat, ...]:
    losing = [batch for batch, found in by_batch.items() if best_row(found).k == 0]
    if not losing:
        return ()
    message = f"at batch {', '.join(map(str, losing))} no draft length pays"
    return (Caveat("speculation-loses", message, "switch speculation off above that load, or take a cheaper draft"),)
