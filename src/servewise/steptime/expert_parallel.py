"""Routed experts spread over ranks: what the fullest rank computes and reads, and the messages there and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from servewise.caveats import Caveat
from servewise.deployment.deployment import Deployment
from servewise.deployment.expert_load import EVEN, USUAL, Counted
from servewise.modelspec.spec import FeedForward
from servewise.steptime.link import UNLINKED, LinkTime, link_time
from servewise.steptime.routing import Routing

if TYPE_CHECKING:
    from servewise.steptime.imbalance import Load

UNEVEN = "expert-imbalance"
COMBINED_BYTES = 2  # results come back in 16 bits
STATED = 4096  # routed tokens at which a caveat says how full the fullest rank is
UNUSED = "expert-load-unused"
CURE = (
    "count the routed tokens of each expert on your own traffic and give the file: --expert-load FILE (SGLang's "
    "expert_distribution_recorder, vLLM's EPLB load), or --expert-load even for the best case"
)


class HotRank(NamedTuple):
    """The fullest rank of a layer: the tokens of ``replicas`` replicas, each with as many as this one, call on it."""

    load: Load
    replicas: int

    def tokens(self, tokens: int) -> float:
        """Its tokens, where an even rank would have the work of ``tokens``."""
        return tokens * self.load.hottest(tokens * self.replicas)

    def read_share(self, tokens: int, even: float) -> float:
        """The share of a rank's experts that it reads, never below the ``even`` share of distinct ones.

        Above 1 where it holds copies beyond its share of the experts.
        """
        routing = self.load.routing
        read = self.load.experts_read(tokens * self.replicas) * routing.ranks / routing.experts
        return min(routing.stored / routing.experts, max(even, read))


def hot_rank(deployment: Deployment, part: FeedForward) -> HotRank | None:
    """The fullest rank of ``part``'s experts; None where every rank holds a slice of each expert."""
    split = deployment.parallelism
    if not part.experts or split.expert_ranks == 1:
        return None
    routing = Routing(
        experts=part.experts,
        chosen=part.experts_per_token,
        ranks=split.expert_ranks,
        load=deployment.expert_load,
        redundant=split.redundant_experts,
    )
    from servewise.steptime.imbalance import load_of  # it draws with NumPy, which most questions can do without

    return HotRank(load_of(routing), split.data)


def uneven_caveats(deployment: Deployment) -> tuple[Caveat, ...]:
    """What a reader must know of the load that was assumed."""
    parts = [group.feed_forward for group in deployment.model.layers]
    hot = [found.load.hottest(STATED) for part in parts if (found := hot_rank(deployment, part)) is not None]
    if not hot:
        return ()
    fullest = f"at {STATED:,} tokens the fullest rank has {max(hot):.3g} times the mean"
    message = f"{_popular(deployment)}: {fullest}{_reported(deployment)}{_balanced(deployment)}"
    return (Caveat(UNEVEN, message, _cure(deployment)),)


def unused_caveats(deployment: Deployment, why: str, cure: str) -> tuple[Caveat, ...]:
    """That a load which was asked for makes no difference to an estimator, ``why`` and what to do."""
    if deployment.parallelism.expert_ranks == 1 or deployment.expert_load == USUAL:
        return ()
    return (Caveat(UNUSED, f"{why}, whatever --expert-load says", cure),)


def measured_caveats(deployment: Deployment) -> tuple[Caveat, ...]:
    """The same of steps that were measured: their server's load lies in them."""
    why = "measured steps have their own server's expert load in them"
    return unused_caveats(deployment, why, "measure under the load that you mean, or --estimator calibrated")


def _cure(deployment: Deployment) -> str:
    counted = isinstance(deployment.expert_load, Counted)
    return "count again where the traffic is another: --expert-load FILE" if counted else CURE


def _popular(deployment: Deployment) -> str:
    """The load in words, and where it is from."""
    load = deployment.expert_load
    if isinstance(load, Counted):
        layers = f"{len(load.tokens)} of {_routed(deployment)} layers"
        return f"experts are as popular as --expert-load {load.source} counts them ({layers})"
    if load == USUAL:
        return f"experts are taken to be as unevenly popular as DeepSeek-R1's (--expert-load {load}, the default)"
    if load == EVEN:
        return "experts are taken to be equally popular (--expert-load even), so that chance alone loads ranks unevenly"
    return f"experts' popularity is drawn from a Dirichlet distribution (--expert-load {load})"


def _routed(deployment: Deployment) -> int:
    """Layers with routed experts."""
    return sum(group.count for group in deployment.model.layers if group.feed_forward.experts)


def _reported(deployment: Deployment) -> str:
    return " (reported: 1.07 to 2.6, after rebalancing 1.1)" if deployment.expert_load == USUAL else ""


def _balanced(deployment: Deployment) -> str:
    copies = deployment.parallelism.redundant_experts
    if copies is None:
        return ""
    by = "by just this load, which drifts in service"
    return f"; EPLB has placed them, with {copies} copies (--redundant-experts), {by}"


class AllToAll(NamedTuple):
    """Tokens to their experts' ranks and results back, for one layer.

    Each rank sends the hidden values of its ``share`` of the tokens (tensor-parallel ranks divide a replica's) to
    ``chosen`` experts, of which (ranks - 1) / ranks lie elsewhere: tokens x chosen x hidden x bytes, dispatched in
    ``sent_bytes`` a value and combined in 16 bits. The fullest rank takes in and gives back more, over its own link.
    Left out: DeepEP's normal kernels send a token once to a rank that has several of its experts.
    """

    chosen: int
    hidden: int
    ranks: int
    share: float
    sent_bytes: float
    link: LinkTime
    hot: HotRank | None = None

    def seconds(self, tokens: int) -> float:
        """The time of dispatch and combine for ``tokens`` tokens of this replica [s].

        >>> link = LinkTime(latency_s=0.0, bytes_per_s=1e9)
        >>> round(AllToAll(8, 7168, 8, 1.0, 1.0, link).seconds(1000), 6)
        0.150528
        """
        if not tokens:
            return 0.0
        full = self.hot.tokens(tokens) if self.hot is not None else tokens
        values = full * self.share * self.chosen * self.hidden * (self.ranks - 1) / self.ranks
        return self.link.seconds(values * self.sent_bytes) + self.link.seconds(values * COMBINED_BYTES)


def all_to_all_of(deployment: Deployment, part: FeedForward) -> AllToAll:
    """The messages of one layer of ``part``'s experts, over the accelerators' link."""
    split, accelerator = deployment.parallelism, deployment.accelerator
    return AllToAll(
        chosen=part.experts_per_token,
        hidden=deployment.model.hidden_size,
        ranks=split.expert_ranks,
        share=1.0 / split.tensor,
        sent_bytes=deployment.activations.bits / 8,
        link=link_time(accelerator if accelerator.link else UNLINKED),
        hot=hot_rank(deployment, part),
    )
