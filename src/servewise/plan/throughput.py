"""The most requests a second that a server can complete for ever: its steps filled as well as they can be.

A step holds D decoding sequences, which read C tokens of context, and P prompt tokens, of Q query-key pairs. Over all
the steps of a run the sums of D, C, P and Q are what the requests are made of. The least time of such steps is a
linear programme over kinds of steps (D, P), and any prices per decoded token a, context token c, prompt token p and
pair q that no step undercuts,

    a D + c C + p P + q Q <= seconds of the step,   for all that a step may hold,

give a bound below it (weak duality): the sums at those prices. Kinds are ranges of D and P: their steps take at least
what the range's first does, with the line that supports a step's convex time in C and Q, and are priced at the range's
last. Of several pipeline stages the slowest counts.

Above one over it a queue grows without end, whatever a finite run shows. Tokens that two requests share under a prefix
cache count as computed for neither (``Lengths.uncached``). Left out, all of which takes longer: padding, waiting,
preemption.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import ceil, inf

import numpy as np
from numpy.typing import NDArray

from servewise.batching.policies import Dynamic, Static
from servewise.batching.speculative.acceptance import MOST_DRAFTED
from servewise.plan.least import ranges_from_top
from servewise.plan.lengths import Lengths
from servewise.plan.server import Server
from servewise.plan.stages import least_shape, stages_of
from servewise.plan.stepping import Stepping, stepping_of
from servewise.steptime.estimator import Estimator

Floats = NDArray[np.float64]
NEAR = 1e-5  # of contexts and pairs, for a step's slope in them
CONTEXT_PRICES = (0.0, 0.5, 1.0, 1.25, 1.6, 2.0, 3.0, 5.0)  # times the steepest slope
PAIR_PRICES = (0.0, 0.5, 1.0)
WIDEST = 0.08  # range of prompt tokens: each takes its share of the arithmetic
Range = tuple[int, int]
SPLITS = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What all requests together are made of, and what bounds their parts.

    ``decoded`` tokens read ``contexts`` tokens, each from ``shortest`` to ``longest``, in a pool of ``pool_tokens``;
    ``computed`` prompt tokens have ``pairs`` pairs, each from 1 to ``most_pairs``.
    """

    requests: int
    decoded: float
    contexts: float
    shortest: float
    longest: float
    pool_tokens: float
    computed: float
    pairs: float
    most_pairs: float


def filled_per_s(server: Server, lengths: Lengths) -> float:
    """The completions [requests/s] of ``server`` for requests of these lengths, its steps filled as well as can be."""
    stepping = stepping_of(server.policy, int(lengths.prompts.max()), speculates=server.speculation is not None)
    stages = stages_of(server).stages
    work, slots = work_of(server, stepping, lengths), slots_of(server, stepping, len(stages))
    longest_s = max(least_s(each, work, stepping, slots) for each in stages)
    return work.requests / longest_s if longest_s > 0 else inf


def slots_of(server: Server, stepping: Stepping, stages: int) -> int:
    """Sequences of a step at most.

    Over stages each lane has its even share (``pipelined.share``); not of whole batches, nor where a prompt's last part
    may join any lane.
    """
    whole, moves = isinstance(server.policy, Static | Dynamic), stepping.longest_chunk is not None
    return server.policy.slots if whole or moves else ceil(server.policy.slots / stages)


def work_of(server: Server, stepping: Stepping, lengths: Lengths) -> Work:
    """The work that requests of these lengths are for ``server``, whatever it has cached."""
    shares = caches(server, stepping)
    ends, new = lengths.prompts.astype(float), lengths.to_compute(caches=shares)
    starts, after = ends - new, (lengths.outputs - 1).astype(float)
    kept = server.speculation is None
    return Work(
        requests=len(ends),
        decoded=float(after.sum()) / (1 if kept else MOST_DRAFTED + 1),
        contexts=float((after * (ends + (after + 1) / 2)).sum()) / (1 if kept else MOST_DRAFTED + 1),
        shortest=float(ends.min()) + 1,
        longest=float((ends + after).max()),
        pool_tokens=inf if server.blocks is None or shares else float(server.blocks * server.block_tokens),
        computed=float(new.sum()),
        pairs=float((ends * (ends + 1) - starts * (starts + 1)).sum()) / 2,
        most_pairs=float(ends.max()),
    )


def caches(server: Server, stepping: Stepping) -> bool:
    """Whether requests share KV."""
    return stepping.caches and server.hash_block_tokens is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Kinds:
    """Kinds of steps, a row each: ranges of sequences and prompt tokens, and a line below their time.

    A step of the range takes at least ``seconds`` + ``context_s`` x its context + ``pair_s`` x its pairs [s].
    """

    decodes: Floats
    most_decodes: Floats
    prompts: Floats
    most_prompts: Floats
    seconds: Floats
    context_s: Floats
    pair_s: Floats


def least_s(stage: Estimator, work: Work, stepping: Stepping, slots: int) -> float:
    """The least time that ``work`` takes of ``stage`` [s]."""
    kinds = kinds_of(stage, work, stepping, slots)
    context, pair = float(kinds.context_s.max()), float(kinds.pair_s.max())
    return max(_priced(kinds, work, context * each, pair * of) for each, of in product(CONTEXT_PRICES, PAIR_PRICES))


def kinds_of(stage: Estimator, work: Work, stepping: Stepping, slots: int) -> Kinds:
    """Every kind of step that ``stage`` may run."""
    most, rows = stepping.most_tokens, []
    decodes = [(0, 0), *ranges_from_top(slots, narrowest=0.15)] if work.decoded else [(0, 0)]
    for decode, prompt in product(decodes, [(0, 0), *ranges_from_top(most, WIDEST)]):
        together = stepping.beside and decode[0] + prompt[0] <= most
        if (decode[0] or prompt[0]) and (together or not (decode[0] and prompt[0])):
            rows.append((*decode, *prompt, *_line(stage, work, decode, prompt)))
    return Kinds(**dict(zip(Kinds.__slots__, np.array(rows, float).T, strict=True)))


def _line(stage: Estimator, work: Work, decodes: Range, prompts: Range) -> tuple[float, float, float]:
    """What supports the time of a range's steps from below: at no context and no pairs, and its slopes in both [s]."""
    context = int(decodes[1] * _mean(work.contexts, work.decoded))
    pairs = max(prompts[1], int(prompts[1] * _mean(work.pairs, work.computed)))
    more_context, more_pairs = max(1, int(context * NEAR)), max(1, int(pairs * NEAR))
    at_s, by_context_s, by_pairs_s = (
        stage.seconds(least_shape(prompts[0], pairs + extra, decodes[0], context + more, int(work.shortest)))
        for extra, more in ((0, 0), (0, more_context), (more_pairs, 0))
    )
    context_s = (by_context_s - at_s) / more_context if decodes[0] else 0.0
    pair_s = (by_pairs_s - at_s) / more_pairs if prompts[0] else 0.0
    return at_s - context_s * context - pair_s * pairs, context_s, pair_s


def _mean(total: float, count: float) -> float:
    return total / count if count else 0.0


def _priced(kinds: Kinds, work: Work, context: float, pair: float) -> float:
    """All of ``work`` at the best prices of tokens, with those of context and pairs given [s]."""
    fewest, most = kinds.decodes * work.shortest, np.minimum(kinds.most_decodes * work.longest, work.pool_tokens)
    contexts = _lowest(kinds.context_s - context, fewest, np.maximum(fewest, most))
    pairs = _lowest(kinds.pair_s - pair, kinds.prompts, kinds.most_prompts * work.most_pairs)
    tokens = _best_tokens(kinds.most_decodes, kinds.most_prompts, kinds.seconds + contexts + pairs, work)
    return tokens + context * work.contexts + pair * work.pairs


def _lowest(slopes: Floats, least: Floats, most: Floats) -> Floats:
    """The least of lines through 0 between ``least`` and ``most``."""
    return slopes * np.where(slopes >= 0, least, most)


def _best_tokens(decodes: Floats, prompts: Floats, left: Floats, work: Work) -> float:
    """The largest a x decoded + p x computed with a D + p P <= ``left`` for every kind; 0 where none is above 0."""
    alone = decodes == 0
    dearest = float((left[alone] / prompts[alone]).min())
    if work.decoded == 0:
        return max(0.0, dearest) * work.computed
    with_decodes = ~alone
    prices = np.linspace(0.0, max(dearest, 0.0), SPLITS)[:, None]
    answer = ((left[with_decodes] - prices * prompts[with_decodes]) / decodes[with_decodes]).min(axis=1)
    found = answer * work.decoded + prices[:, 0] * work.computed
    return float(found.max())
