"""A kind of replica: what runs on it, how fast, with how much memory."""

from __future__ import annotations

from dataclasses import dataclass, replace

from servewise.batching.policies import Policy
from servewise.batching.positive import positive
from servewise.batching.speculative.policy import Speculative
from servewise.batching.speculative.tally import Tally
from servewise.deployment.deployment import Deployment
from servewise.simulate.recorder import Recorder
from servewise.simulate.replica import Beside, Replica, Watch
from servewise.simulate.serving import replica_for
from servewise.steptime.estimator import Estimator


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaKind:
    """The arguments of ``simulate`` for one replica, and its ``weight``: how much work it takes beside the others.

    A router that heeds weights gives a replica of weight 2 twice the requests of one of weight 1. ``beside`` belongs to
    a ``policy`` that speculates: the drafter's time.
    """

    policy: Policy
    estimator: Estimator
    blocks: int | None = None
    block_tokens: int = 16
    hash_block_tokens: int | None = None
    weight: float = 1.0
    beside: Beside | None = None
    deployment: Deployment | None = None

    def __post_init__(self) -> None:
        """Refuse a weight that is not above 0."""
        positive("a replica's weight", self.weight)

    def replica(
        self, number: int, recorder: Recorder, *, longest_jump: int | None = None, watch: Watch | None = None
    ) -> Replica:
        """A fresh server of this kind: nothing is there, nothing is cached."""
        return replica_for(
            self.deployment,
            self.policy,
            self.estimator,
            recorder,
            blocks=self.blocks,
            block_tokens=self.block_tokens,
            hash_block_tokens=self.hash_block_tokens,
            number=number,
            longest_jump=longest_jump,
            beside=self.beside,
            watch=watch,
        )

    @property
    def speculates(self) -> bool:
        """Whether its sequences speculate."""
        return isinstance(self.policy, Speculative)

    def drawing(self, seed: int, tally: Tally | None = None) -> ReplicaKind:
        """The same for one run: what stands of its drafts is drawn from ``seed`` and counted in ``tally``.

        A draw is the request's own, wherever it runs, so all replicas of a run have the same seed.
        """
        if not isinstance(self.policy, Speculative):
            return self
        return replace(self, policy=replace(self.policy, seed=seed, tally=tally))

    @property
    def stages(self) -> int:
        """Pipeline stages of one replica."""
        return 1 if self.deployment is None else self.deployment.parallelism.pipeline

    @property
    def caches(self) -> bool:
        """Whether its policy keeps prefixes."""
        return bool(getattr(self.policy, "prefix_cache", False))

    @property
    def kept_hashes(self) -> int | None:
        """How many hash blocks the pool can keep; None: without limit."""
        if self.blocks is None or self.hash_block_tokens is None:
            return None
        return self.blocks * self.block_tokens // self.hash_block_tokens
