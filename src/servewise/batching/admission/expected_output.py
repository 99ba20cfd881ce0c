"""Blocks for the prompt, and room for the part of every output that is expected: SGLang's estimate (0.5.6)."""

from __future__ import annotations

from servewise.batching.blockpool import BlockPool
from servewise.batching.decodegroup import DecodeGroup
from servewise.batching.sequence import Sequence

INIT_RATIO = 0.7  # SGLANG_INIT_NEW_TOKEN_RATIO, srt/environ.py
MIN_FACTOR = 0.14  # SGLANG_MIN_NEW_TOKEN_RATIO_FACTOR
DECAY_STEPS = 600  # SGLANG_NEW_TOKEN_RATIO_DECAY_STEPS
RETRACT_STEPS = 20  # SGLANG_RETRACT_DECODE_STEPS
MOST_EXPECTED = 4096  # SGLANG_CLIP_MAX_NEW_TOKENS_ESTIMATION


class NewTokenRatio:
    """The share of its ``max_new_tokens`` that a running sequence is expected to go on to make.

    It starts at 0.7 of ``schedule_conservativeness`` (at most 1) and falls by a 600th of its way to 0.14 of that with
    each decode step; a retraction sets it to what has been made of what was allowed; an idle server starts again
    (managers/scheduler.py ``init_new_token_ratio``, ``update_running_batch``). Counted in whole steps, so that many
    steps at once give what one by one gives.
    """

    def __init__(self, conservativeness: float) -> None:
        self._first = min(INIT_RATIO * conservativeness, 1.0)
        self._least = min(self._first * MIN_FACTOR, 1.0)
        self._decay = (self._first - self._least) / DECAY_STEPS
        self.reset()

    @property
    def now(self) -> float:
        """The ratio at this step."""
        return max(self._base - self._decay * self._steps, self._least)

    def reset(self) -> None:
        """The server is idle."""
        self._base, self._steps = self._first, 0

    def decoded(self, steps: int) -> None:
        """``steps`` decode steps ran without a retraction."""
        self._steps += steps

    def retracted(self, made: int, allowed: int, sequences: int) -> None:
        """After a retraction ``sequences`` go on that have made ``made`` of ``allowed`` tokens."""
        self._base, self._steps = min(1.0, (made + RETRACT_STEPS * sequences) / (allowed + 1)), 0


class ExpectedOutput:
    """``PrefillAdder`` (managers/schedule_policy.py): prompt and whole output of a newcomer must fit beside the rest.

    What running sequences are expected to make yet is held back for them, and the whole outputs of those admitted to
    the same batch. Blocks are taken chunk by chunk.
    """

    grows = True
    by_chunk = True
    eased_by_eviction = False

    def __init__(self, pool: BlockPool, ratio: NewTokenRatio) -> None:
        self._pool = pool
        self.ratio = ratio
        self._held_back = 0.0  # tokens

    def holds(self, sequence: Sequence) -> bool:
        """Prompt and output are fewer than the pool's tokens (``total_tokens >= rem_total_tokens`` does not run)."""
        return sequence.prompt_tokens + sequence.output_tokens < self._pool.capacity_tokens

    def begin(self, running: list[Sequence], group: DecodeGroup, blocks_beside: int) -> None:
        """A prefill batch is formed while ``running`` decode; in the same step they take ``blocks_beside`` blocks."""
        expected = sum([min(each.output_tokens - group.generated(each), MOST_EXPECTED) for each in running])
        self._held_back = blocks_beside * self._pool.block_tokens + expected * self.ratio.now

    @property
    def left(self) -> float:
        """Tokens that are neither taken nor held back."""
        return self._pool.available * self._pool.block_tokens - self._held_back

    def hold_back(self, tokens: int) -> None:
        """Tokens that someone in this batch will take."""
        self._held_back += tokens

    def uncached(self, sequence: Sequence) -> int:
        """Prompt tokens to compute, after what the prefix cache has."""
        pool = self._pool
        return sequence.target_tokens - pool.cached_prefix(sequence) * (pool.hash_block_tokens or 0)

    def fits(self, sequence: Sequence, uncached: int) -> bool:
        """Whether its prompt and all of its output fit into what is left."""
        return uncached + self._output(sequence) < self.left

    def admit(self, sequence: Sequence, most_new: int, spare: int) -> bool:
        """Take the blocks of the first chunk of ``most_new`` tokens at most; ``spare`` blocks go to decoding ones."""
        pool = self._pool
        if stored := sequence.stored_tokens:
            whole = self._blocks(stored + self._output(sequence))
            return pool.admit(sequence, stored, max(spare, whole - pool.blocks_for(stored)))
        uncached = self.uncached(sequence)
        new = min(uncached, most_new)
        cached = sequence.target_tokens - uncached
        first = pool.blocks_for(cached + new) - pool.blocks_for(cached)
        whole = self._blocks(uncached + self._output(sequence))
        if not pool.admit(sequence, cached + new, spare + max(0, whole - first)):
            return False
        if new == uncached:
            self._held_back += min(sequence.output_tokens, MOST_EXPECTED)
        return True

    def _blocks(self, tokens: int) -> int:
        """Blocks that must be there so that more than ``tokens`` tokens are left beside what is held back."""
        return int((tokens + self._held_back) // self._pool.block_tokens) + 1

    @staticmethod
    def _output(sequence: Sequence) -> int:
        return min(max(sequence.output_tokens - sequence.generated, 0), MOST_EXPECTED)
