"""What a plan varies, as it is asked for: one value or several of each; and the space of candidates that it spans."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import product
from typing import Any, TypeVar

from servewise.ask.deploying import engine_named
from servewise.ask.expert_loads import ExpertLoadLike, check_ep, copies_of, expert_load_named
from servewise.ask.names import AcceleratorLike, PrecisionLike, accelerator_named, precision_named
from servewise.ask.numbers import positive, share, whole, wholes
from servewise.ask.serving import POLICIES
from servewise.caveats import Caveat
from servewise.deployment.deployment import Limits
from servewise.errors import InputError, UnknownName
from servewise.hardware.accelerator import Accelerator
from servewise.modelspec.spec import ModelSpec
from servewise.plan.candidates import Listed, Space
from servewise.plan.presets import PRESETS

T = TypeVar("T")
CURE = "other slots or tokens a step, other counts or copies of experts"


@dataclass(frozen=True, slots=True, kw_only=True)
class Varied:
    """The arguments of ``plan`` that span its candidates, unread; each is one value or several, None the usual one."""

    accelerators: AcceleratorLike | Iterable[AcceleratorLike]
    counts: int | Iterable[int]
    pp: int | Iterable[int]
    ep: bool | Iterable[bool]
    expert_load: ExpertLoadLike | None
    redundant_experts: int | None
    weights: PrecisionLike | Iterable[PrecisionLike] | None
    kv: PrecisionLike | Iterable[PrecisionLike] | None
    engine: str | Iterable[str]
    policy: str | Iterable[str]
    slots: int | Iterable[int] | None
    max_batched_tokens: int | Iterable[int] | None
    window: float
    chunked: bool | Iterable[bool]
    prefix_cache: bool | Iterable[bool]
    memory_utilization: float | Iterable[float] | None
    max_context: int | None

    def space(self, model: ModelSpec) -> Space:
        """All of it for ``model``; InputError names the argument that makes no sense."""
        spread = _several(self.ep)
        asked = {"expert_load": self.expert_load, "redundant_experts": self.redundant_experts}
        check_ep(model, spread, **asked)
        counts, pipelines = wholes(self.counts, "counts"), wholes(self.pp, "pp")
        _check_ranks(counts, pipelines, **asked)
        policies, chunked, caches = (
            tuple(map(_policy, _several(self.policy))),
            _several(self.chunked),
            _several(self.prefix_cache),
        )
        if any(each in PRESETS for each in policies):
            _belongs(policies, chunked=chunked != (True,), prefix_cache=caches != (False,))
        return Space(
            model=model,
            accelerators=tuple(accelerator_named(each) for each in _several(self.accelerators)),
            counts=counts,
            pipelines=pipelines,
            expert=spread,
            expert_load=expert_load_named(self.expert_load),
            redundant_experts=copies_of(self.redundant_experts),
            weights=_each(self.weights, lambda each: precision_named(each, "weights")),
            kv=_each(self.kv, lambda each: precision_named(each, "kv")),
            engines=tuple(engine_named(each) for each in _several(self.engine)),
            policies=policies,
            slots=_each(self.slots, lambda each: whole(each, "slots")),
            batched_tokens=_each(self.max_batched_tokens, lambda each: whole(each, "max_batched_tokens")),
            memory_utilization=_each(self.memory_utilization, lambda each: share(each, "memory_utilization")),
            chunked_prefill=chunked,
            prefix_cache=caches,
            limits=Limits(max_context_tokens=self._context()),
            window_s=positive(self.window, "window"),
        )

    def _context(self) -> int | None:
        return None if self.max_context is None else whole(self.max_context, "max_context")


def left_out_caveats(space: Listed) -> tuple[Caveat, ...]:
    """What a reader must know of combinations of settings that engines refuse."""
    return tuple(
        Caveat("left-out", f"{count} combinations of settings are no candidates: {why}", CURE)
        for why, count in space.refused.items()
    )


def _several(values: Any) -> tuple[Any, ...]:
    """One value or several, as several; names are told apart, repeats dropped."""
    single = isinstance(values, (str, Accelerator)) or not isinstance(values, Iterable)
    several = (values,) if single else tuple(values)
    return tuple(each for place, each in enumerate(several) if each not in several[:place])


def _each(values: Any, check: Callable[[Any], T]) -> tuple[T | None, ...]:
    """One value or several, checked; None is the one value that stands for the usual."""
    return (None,) if values is None else tuple(check(each) for each in _several(values))


def _policy(name: str) -> str:
    known = (*POLICIES, *PRESETS)
    if name not in known:
        raise UnknownName("policy", str(name), known, where="policy", hint=f"one of {', '.join(known)}")
    return name


def _check_ranks(counts: Iterable[int], pipelines: Iterable[int], **given: object) -> None:
    """Refuse what says how ranks share experts where no replica has two to share them."""
    if any(count > stages and count % stages == 0 for count, stages in product(counts, pipelines)):
        return
    for name in (name for name, value in given.items() if value is not None):
        raise InputError("says how ranks are loaded, but each replica has one", where=name, hint="other --counts")


def _belongs(policies: Iterable[str], **of_continuous: bool) -> None:
    """Refuse what would be ignored: what continuous batching alone is asked for, where it is not weighed."""
    if "continuous" in policies:
        return
    for name, asked in of_continuous.items():
        if asked:
            what = "is of the policy continuous; the others are as they are"
            raise InputError(what, where=name, hint="leave it out, or add --policy continuous")
