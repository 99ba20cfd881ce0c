"""One server ready to run: a Replica, or a pipelined one where the model is split over stages."""

from __future__ import annotations

from servewise.batching.batch import Batcher
from servewise.batching.blockpool import BlockPool
from servewise.batching.policies import Policy
from servewise.deployment.deployment import Deployment
from servewise.simulate.pipelined.lanes import Lanes
from servewise.simulate.pipelined.replica import PipelinedReplica
from servewise.simulate.pipelined.share import Share
from servewise.simulate.recorder import Recorder
from servewise.simulate.replica import Beside, Replica, Watch
from servewise.steptime.estimator import Estimator
from servewise.steptime.pipeline import Pipeline, pipeline_of


def replica_for(
    deployment: Deployment | None,
    policy: Policy,
    estimator: Estimator,
    recorder: Recorder,
    *,
    blocks: int | None = None,
    block_tokens: int = 16,
    hash_block_tokens: int | None = None,
    number: int = 0,
    longest_jump: int | None = None,
    beside: Beside | None = None,
    watch: Watch | None = None,
) -> Replica:
    """A server of ``deployment`` (None: on one accelerator, whatever it is) under ``policy`` and the clock of
    ``estimator``, one for the whole of it.

    ``blocks`` of ``block_tokens`` tokens is its KV pool, None: without limit; the other arguments are those of
    ``simulate`` and of ``Replica``.
    """
    cached = hash_block_tokens if getattr(policy, "prefix_cache", False) else None
    pool = BlockPool(blocks, block_tokens, cached)
    if deployment is None or deployment.parallelism.pipeline == 1:
        batcher = policy.batcher(pool, estimator.window_tokens)
        return Replica(
            batcher, estimator, recorder, number=number, longest_jump=longest_jump, beside=beside, watch=watch
        )
    return pipelined(
        pipeline_of(deployment, estimator),
        policy,
        estimator,
        recorder,
        pool,
        number=number,
        longest_jump=longest_jump,
        beside=beside,
        watch=watch,
    )


def pipelined(
    pipeline: Pipeline,
    policy: Policy,
    estimator: Estimator,
    recorder: Recorder,
    pool: BlockPool,
    *,
    number: int = 0,
    longest_jump: int | None = None,
    beside: Beside | None = None,
    watch: Watch | None = None,
) -> PipelinedReplica:
    """A server whose batches go through the stages of ``pipeline``; ``estimator`` is that of the whole."""
    count = len(pipeline.stages)

    def batcher(of: BlockPool) -> Batcher:
        return policy.batcher(of, estimator.window_tokens)

    return PipelinedReplica(
        Lanes(batcher, pool, Share.of(policy, count), count),
        pipeline,
        estimator,
        recorder,
        number=number,
        longest_jump=longest_jump,
        beside=beside,
        watch=watch,
    )
