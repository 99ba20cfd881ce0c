"""From a deployment and a policy's name to a server that can run requests, with what its engine assumes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import islice

from servewise.ask.numbers import positive, whole
from servewise.ask.presets import preset_named
from servewise.ask.settings import check_settings, for_kind
from servewise.batching.policies import Continuous, Dynamic, Policy, Static
from servewise.caveats import Caveat
from servewise.deployment.capacity import DoesNotFit, KvCapacity, kv_capacity
from servewise.deployment.deployment import Deployment
from servewise.deployment.engine import engine_profile
from servewise.errors import InputError, UnknownName
from servewise.plan.presets import PRESETS
from servewise.simulate.arrivals import Arrivals, ClosedArrivals, OpenArrivals
from servewise.units import format_bytes
from servewise.workload.conversations import Conversations
from servewise.workload.load import load_workload, with_requests
from servewise.workload.request import Request
from servewise.workload.synthetic import ClosedLoop, Synthetic
from servewise.workload.traces.trace import Trace
from servewise.workload.workload import Workload

POLICIES = ("static", "dynamic", "continuous")
BATCH = 8  # slots of static and dynamic batching where none are given, as in the study
WINDOW_S = 0.05
PEEKED = 20_000

Load = Workload | ClosedLoop
WorkloadLike = str | Load


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyOptions:
    """What policies take; ``slots`` None: the engine's own limit for continuous, 8 for the others.

    ``settings`` are an engine's own, for its preset; the others are for the plain policies.
    """

    slots: int | None = None
    window_s: float = WINDOW_S
    reserve: bool = False
    chunked: bool = True
    prefix_cache: bool = False
    settings: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.slots is not None:
            whole(self.slots, "slots")
        positive(self.window_s, "window")

    def for_preset(self, name: str) -> Mapping[str, object]:
        """The settings; InputError where something was asked for that a preset has under a name of its own."""
        plain = {
            "slots": self.slots,
            "reserve": self.reserve,
            "chunked": not self.chunked,
            "prefix-cache": self.prefix_cache,
        }
        for option, asked in plain.items():
            if asked:
                own = ", ".join(each.name for each in fields(PRESETS[name].kind))
                raise InputError(f"policy {name} has settings of its own", where=option, hint=f"--set one of {own}")
        return self.settings


def policy_named(name: str, deployment: Deployment, options: PolicyOptions) -> Policy:
    """The policy called static, dynamic or continuous, or an engine's preset, with the engine's limits where none are
    given."""
    if name in PRESETS:
        return preset_named(name, deployment, options.for_preset(name))
    if name == "static":
        return Static(options.slots or BATCH)
    if name == "dynamic":
        return Dynamic(options.slots or BATCH, options.window_s)
    if name != "continuous":
        known = (*POLICIES, *PRESETS)
        raise UnknownName("policy", str(name), known, where="policy", hint=f"one of {', '.join(known)}")
    usual = engine_profile(deployment.engine).batch_defaults(deployment.accelerator)
    slots = options.slots or deployment.limits.max_sequences or usual.max_sequences
    return Continuous(
        max_sequences=slots,
        max_batched_tokens=deployment.limits.max_batched_tokens or max(usual.max_batched_tokens, slots),
        chunked_prefill=options.chunked,
        reserve_output=options.reserve,
        prefix_cache=options.prefix_cache,
    )


def policies_named(names: Sequence[str], deployment: Deployment, options: PolicyOptions) -> list[Policy]:
    """The policies of those names; each engine's preset takes the settings that it has, or that name it.

    Raises InputError for a setting that none of them takes.
    """
    presets = {name: PRESETS[name].kind for name in names if name in PRESETS}
    check_settings(presets, options.settings, tuple(PRESETS))
    return [
        policy_named(name, deployment, replace(options, settings=for_kind(name, presets[name], options.settings)))
        if name in presets
        else policy_named(name, deployment, options)
        for name in names
    ]


def describe(policy: Policy) -> str:
    """The policy in words, for conditions."""
    return policy.describe


def capacity_for_serving(deployment: Deployment) -> KvCapacity:
    """The pool, or InputError where nothing fits: then there is nothing to run."""
    capacity = kv_capacity(deployment)
    if isinstance(capacity, DoesNotFit):
        raise InputError(
            f"{deployment.model.name} does not fit: {format_bytes(capacity.short_by_bytes)} short on each accelerator",
            where=deployment.accelerator.title,
            hint="more accelerators (--tp), fewer bits (--weights, --kv), or a shorter --max-context",
        )
    return capacity


def workload_named(workload: WorkloadLike, requests: int | None = None) -> Load:
    """The workload of a built-in name, a workload file or a trace, cut or repeated to ``requests`` if given."""
    found = load_workload(workload) if isinstance(workload, str) else workload
    if requests is None:
        return found
    if not isinstance(found, (Synthetic, ClosedLoop, Conversations, Trace)):
        raise InputError("a workload of one's own has its own length", where="requests", hint="cut it before")
    return with_requests(found, whole(requests, "requests"))


def longest_context(deployment: Deployment) -> int | None:
    """The longest sequence that the engine takes [tokens]."""
    return deployment.limits.max_context_tokens or deployment.model.max_context_tokens


class Door:
    """The requests that an engine with the context ``longest`` takes, numbered anew; it refuses the others."""

    def __init__(self, requests: Iterable[Request], longest: int | None) -> None:
        self._requests = requests
        self.longest = longest
        self.refused = self.came = 0

    def __iter__(self) -> Iterator[Request]:
        longest = self.longest
        for each in self._requests:
            self.came += 1
            if longest is not None and each.prompt_tokens + each.output_tokens > longest:
                self.refused += 1
            else:
                yield each._replace(serial=each.serial - self.refused) if self.refused else each


def refused_caveats(refused: int, total: int, longest: int | None) -> tuple[Caveat, ...]:
    """What a reader must know about requests refused at the door."""
    if not refused:
        return ()
    message = (
        f"{refused} of {total} requests ({refused / total:.1%}) are longer than the context of {longest} tokens: "
        "an engine refuses them; they count as rejected and load nothing"
    )
    return (Caveat("beyond-context", message, "a model of longer context, or --max-context with a scaled position"),)


def is_closed(workload: Load) -> bool:
    """Whether users wait for their answers, so that it has no rate of its own."""
    return isinstance(workload, ClosedLoop) or (isinstance(workload, Conversations) and workload.users is not None)


def users_of(workload: Load) -> int | None:
    """How many users wait for their answers; None: requests come whether or not anybody waits."""
    return workload.concurrency if isinstance(workload, ClosedLoop) else getattr(workload, "users", None)


def fitted(workload: Load, longest: int | None) -> Load:
    """The same load for a model of that context: a conversation ends before it would outgrow it."""
    return workload.within(longest) if isinstance(workload, Conversations) else workload


def outgrown_caveats(workload: Load, seed: int) -> tuple[Caveat, ...]:
    """What a reader must know about conversations that the context cuts short."""
    if not isinstance(workload, Conversations):
        return ()
    talks = list(workload.conversations(seed))
    cut = sum(each.outgrown for each in talks)
    if not cut:
        return ()
    message = (
        f"{cut} of {len(talks)} conversations ({cut / len(talks):.1%}) would outgrow {workload.max_context_tokens:,} "
        "tokens: they end before that turn"
    )
    return (Caveat("outgrown-context", message, "a model of longer context, or --max-context with a scaled position"),)


def shapes_of(workload: Load, seed: int) -> Iterator[Request]:
    """The requests of ``seed``; of a closed loop those that its users will take, without times.

    Of conversations, their turns as they would come to a server that answers at once.
    """
    return workload.shapes(seed) if isinstance(workload, ClosedLoop) else workload.requests(seed)


def source_of(workload: Load, rate_per_s: float, seed: int, longest: int | None) -> tuple[Arrivals, Door]:
    """The requests as they come at that rate (a closed loop has none), and the door that they pass."""
    if isinstance(workload, ClosedLoop):
        door = Door(workload.shapes(seed), longest)
        return ClosedArrivals(door, workload.concurrency, workload.think_s), door
    if isinstance(workload, Conversations):
        talks = workload if workload.users is not None else workload.at_rate(rate_per_s)
        return talks.session(seed), Door((), longest)
    door = Door(workload.at_rate(rate_per_s).requests(seed), longest)
    return OpenArrivals(door), door


def is_seeded(workload: Load) -> bool:
    """Whether another seed gives other requests; a trace is the same for all."""
    return list(islice(shapes_of(workload, 0), 50)) != list(islice(shapes_of(workload, 1), 50))


def caveats_of(workload: Load) -> tuple[Caveat, ...]:
    """What was left out of a trace, or is inexact about it."""
    if isinstance(workload, Conversations):
        return _settling(workload.session(0).settle_s)
    return workload.caveats if isinstance(workload, Trace) else ()


def _settling(settle_s: float) -> tuple[Caveat, ...]:
    if not settle_s:
        return ()
    message = (
        f"the first {settle_s:,.0f} s only let the conversations under way come to their usual number: figures, cost, "
        "and the times of failures and moments count from then"
    )
    return (Caveat("settling", message, "settle_s in a workload file of your own, for a shorter or longer time"),)


def lengths_of(workload: Load) -> str:
    """Mean input and output of the first requests, for conditions."""
    peeked = list(islice(shapes_of(workload, 0), PEEKED))
    if not peeked:
        raise InputError("has no requests", where=workload.title)
    prompt = sum(each.prompt_tokens for each in peeked) / len(peeked)
    output = sum(each.output_tokens for each in peeked) / len(peeked)
    return f"mean {prompt:,.0f} tokens in, {output:,.0f} out"
