"""All that a plan is asked: its space of candidates, what is sought and the load; as a question, and as its answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from servewise.answer import Answer
from servewise.ask.launching import launches_of
from servewise.ask.plan_offer import Offer
from servewise.ask.plan_prices import prices_of
from servewise.ask.plan_sought import Sought
from servewise.ask.plan_space import left_out_caveats
from servewise.ask.planned import result_of
from servewise.ask.planned_caveats import caveats_of
from servewise.ask.serving import lengths_of
from servewise.caveats import Caveat, unique
from servewise.conditions import Conditions
from servewise.plan.candidates import Listed, Space, listed
from servewise.plan.clock import kind_for
from servewise.plan.planner import Planned
from servewise.plan.question import Question
from servewise.version import __version__


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """``question`` holds it for the planner; InputError names the argument that makes no sense."""

    space: Space
    sought: Sought
    offer: Offer
    listed: Listed = field(init=False)
    question: Question = field(init=False)

    def __post_init__(self) -> None:
        """List the candidates, and put the question."""
        object.__setattr__(self, "listed", listed(self.space))
        object.__setattr__(self, "question", self._question())

    def launches(self, found: Planned, model: str, targets: tuple[str, ...]) -> dict[str, Any]:
        """The recommendation as command lines; ``model`` is what engines fetch it by."""
        return launches_of(self.question, found, model, targets, self.space.limits.max_context_tokens)

    def answer(self, found: Planned, launches: Mapping[str, Any]) -> Answer:
        """The answer to ``question``."""
        return Answer(
            command="plan",
            conditions=self._conditions(),
            result=result_of(self.question, found, self.sought.rate_per_s) | {"launch": launches},
            caveats=self._caveats(found),
        )

    def _question(self) -> Question:
        sought, offer = self.sought, self.offer
        return Question(
            candidates=self.listed.candidates,
            traffic=offer.traffic,
            slo=sought.slo,
            prices=prices_of(self.space.accelerators, sought.prices),
            rate_per_s=offer.taken(sought.rate_per_s),
            estimator=sought.estimator,
            hash_block_tokens=offer.load.hash_block_tokens,
            others=offer.others(),
            seed=offer.seed,
            top=sought.most_ranked,
            most_accelerators=sought.most_accelerators,
            prunes=sought.prune,
        )

    def _conditions(self) -> Conditions:
        space, offer, rate = self.space, self.offer, self.sought.rate_per_s
        weights = ", ".join(str(each or space.model.weights) for each in space.weights)
        kv = ", ".join(str(each or space.model.dtype) for each in space.kv)
        kinds = {kind_for(each.deployment, self.sought.estimator) for each in self.question.candidates}
        return Conditions(
            hardware=" or ".join(each.title for each in space.accelerators),
            load="the highest rate that keeps the SLO" if rate is None else f"{rate:g} requests/s",
            lengths=lengths_of(offer.load),
            precision=f"{weights} weights, {kv} KV cache",
            model=space.model.name,
            parallelism=f"{', '.join(map(str, space.counts))} accelerators a replica",
            experts=str(space.expert_load) if True in space.expert and kinds != {"ideal"} else None,
            engine=", ".join(dict.fromkeys(each.deployment.engine for each in self.question.candidates)),
            estimator=", ".join(sorted(kinds)),
            policy=", ".join(space.policies),
            workload=offer.load.title,
            seeds=(offer.seed,),
            version=__version__,
        )

    def _caveats(self, found: Planned) -> tuple[Caveat, ...]:
        return unique((*self.offer.caveats, *left_out_caveats(self.listed), *caveats_of(self.question, found)))
