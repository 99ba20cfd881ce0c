"""One replica at work: a policy, the time of its steps and its KV pool, ready to run requests."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import cast

from servewise.batching.policies import Policy
from servewise.batching.speculative.policy import Groupable
from servewise.batching.speculative.tally import Tally
from servewise.deployment.deployment import Deployment
from servewise.records.columns import RequestColumns
from servewise.simulate.arrivals import Arrivals
from servewise.simulate.recorder import Sink
from servewise.simulate.replica import Watch
from servewise.simulate.run import Run, simulate
from servewise.simulate.speculating.speculation import Speculation
from servewise.steptime.estimator import Estimator
from servewise.workload.request import Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """``blocks`` of ``block_tokens`` tokens are one replica's KV pool, None: without limit.

    ``deployment``, where it splits the model over pipeline stages, has that many batches in flight. ``speculation``:
    its sequences speculate, under a policy that batches continuously.
    """

    policy: Policy
    estimator: Estimator
    blocks: int | None
    block_tokens: int
    hash_block_tokens: int | None = None
    deployment: Deployment | None = None
    speculation: Speculation | None = None

    @property
    def stages(self) -> int:
        """Pipeline stages, and so batches in flight."""
        return 1 if self.deployment is None else self.deployment.parallelism.pipeline

    def run(
        self,
        requests: Iterable[Request] | Arrivals,
        *,
        until: Callable[[RequestColumns], bool] | None = None,
        progress: Callable[[int], None] | None = None,
        watch: Watch | None = None,
        seed: int = 0,
        tally: Tally | None = None,
        longest_jump: int | None = None,
        into: Sink | None = None,
    ) -> Run:
        """Run ``requests`` to their ends, or until told to stop; ``watch`` sees every step.

        ``seed`` draws what speculation keeps, and ``tally`` counts it; ``longest_jump`` 1 runs steps one by one.
        ``into`` takes the records as they are made, in place of the Run.
        """
        policy, beside = self.policy, None
        if self.speculation is not None:
            drafting = self.speculation.policy(cast("Groupable", policy), seed)
            policy, beside = replace(drafting, tally=tally), self.speculation.beside
        return simulate(
            requests,
            policy,
            self.estimator,
            blocks=self.blocks,
            block_tokens=self.block_tokens,
            hash_block_tokens=self.hash_block_tokens,
            until=until,
            progress=progress,
            watch=watch,
            longest_jump=longest_jump,
            beside=beside,
            deployment=self.deployment,
            into=into,
        )

    def timed_by(self, estimator: Estimator) -> Server:
        """The same server with another clock."""
        speculation = None if self.speculation is None else self.speculation.timed_by(estimator)
        return replace(self, estimator=estimator, speculation=speculation)
