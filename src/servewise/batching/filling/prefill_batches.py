"""Prefill batches ahead of decode, a long prompt in chunks, one at a time: SGLang's scheduler (managers/, 0.5.6)."""

from __future__ import annotations

from servewise.batching.admission.expected_output import MOST_EXPECTED, ExpectedOutput
from servewise.batching.batch import Batch, Chunk
from servewise.batching.blockpool import BlockPool
from servewise.batching.decodegroup import DecodeGroup, GroupMaker
from servewise.batching.filling.batcher import ContinuousBatcher, Planned, Preempted
from servewise.batching.retreat.victims import fewest_generated
from servewise.batching.sequence import Sequence
from servewise.batching.waiting.queue import WaitingQueue

WHOLE = 1 << 62


class PrefillBatches(ContinuousBatcher):
    """``max_prefill_tokens`` bound a prefill batch, ``chunked_prefill_size`` its computed tokens (None: no chunks).

    ``mixed``: running sequences decode in prefill batches too, each for one token of both budgets. Once a waiting
    sequence did not fit, none is tried before one ends or is retracted (``batch_is_full``).
    """

    def __init__(
        self,
        pool: BlockPool,
        admission: ExpectedOutput,
        *,
        max_sequences: int,
        max_prefill_tokens: int,
        chunked_prefill_size: int | None,
        mixed: bool,
        waiting: WaitingQueue,
        window_tokens: int | None = None,
        group: GroupMaker = DecodeGroup,
    ) -> None:
        super().__init__(
            pool,
            admission,
            max_sequences=max_sequences,
            max_batched_tokens=max_prefill_tokens,
            window_tokens=window_tokens,
            group=group,
            waiting=waiting,
            victim=fewest_generated,
        )
        self.decodes_beside_prompts = mixed
        self._expected = admission
        self._chunk_size = WHOLE if chunked_prefill_size is None else chunked_prefill_size
        self._full = False

    def plan(self, now_s: float) -> Batch | None:  # noqa: ARG002
        """A prefill batch if one can be formed, else a decode step, for whose blocks some may be retracted."""
        group, short = self.group, self._short()
        if (self._prefilling or (self._waiting and not self._full)) and not (short and self.decodes_beside_prompts):
            chunks, admitted, _ = self._with_prompts(())
            if chunks or admitted:
                return self._mixed(chunks, admitted, ())
            short = self._short()
        if not group.size:
            self._expected.ratio.reset()
            self._full = False
            return None
        if short:
            return self._decode(self._retract(), once=True)
        return self._decode((), once=bool(self._prefilling or (self._waiting and not self._full)))

    def _short(self) -> bool:
        group = self.group
        return group.size > 0 and group.blocks_for_next() > self.pool.available

    def _retract(self) -> Preempted:
        retracted = self._make_room()
        if not retracted:
            return ()
        group = self.group
        going_on = [each for each in self._running.values() if each.join]
        made = sum([group.generated(each) for each in going_on])
        self._expected.ratio.retracted(made, sum([each.output_tokens for each in going_on]), len(going_on))
        self._full = False
        return retracted

    def _decode(self, preempted: Preempted, *, once: bool = False) -> Batch:
        batch = super()._decode(preempted, once=once)
        return batch._replace(open=False) if self._full and batch.open else batch

    def _with_prompts(self, preempted: Preempted) -> Planned:
        group, mixed = self.group, self.decodes_beside_prompts
        decoding = [each for each in self._running.values() if each.join]
        self._expected.begin(decoding, group, group.blocks_for_next() if mixed else 0)
        beside = group.size if mixed else 0
        chunks: list[Chunk] = []
        admitted: list[Sequence] = []
        chunk_left = self._chunk_size - beside
        for sequence in self._prefilling:
            chunk_left -= self._continue(sequence, chunk_left, chunks)
        if not self._full and self._waiting:
            self._waiting.arrange()
            unfinished = bool(self._prefilling) and not (chunks and chunks[0].ends_prompt)
            self._fill(chunk_left, beside, chunks, admitted, unfinished=unfinished)
        return chunks, admitted, preempted

    def _continue(self, sequence: Sequence, chunk_left: int, chunks: list[Chunk]) -> int:
        """The next chunk of the long prompt under way: what chunk size and memory leave; returns its paged tokens."""
        expected, computed = self._expected, sequence.computed_tokens
        left = sequence.target_tokens - computed
        new = min(left, chunk_left, int(expected.left))
        if new <= 0:
            return 0
        chunks.append(Chunk(sequence, computed, new, new == left))
        expected.hold_back(self._paged(new))
        if new == left:
            expected.hold_back(min(sequence.output_tokens, MOST_EXPECTED))
        return self._paged(new)

    def _paged(self, tokens: int) -> int:
        return self.pool.blocks_for(tokens) * self.pool.block_tokens

    def _fill(
        self, chunk_left: int, beside: int, chunks: list[Chunk], admitted: list[Sequence], *, unfinished: bool
    ) -> None:
        """Admit while batch and memory last; ``unfinished``: the one long prompt that may be in chunks is not done."""
        input_left = self.max_batched_tokens - beside - sum([self._paged(each.new_tokens) for each in chunks])
        page, waiting, expected = self.pool.block_tokens, self._waiting, self._expected
        while waiting and not self._full:
            head = waiting.head()
            uncached = 0 if head.stored_tokens else expected.uncached(head)
            if len(self._running) >= self.max_sequences or not expected.fits(head, uncached):
                self._full = True
                return
            paged = self._paged(uncached)
            most = uncached if paged <= chunk_left else 0 if unfinished else chunk_left // page * page
            if (chunks and paged >= input_left) or (most <= 0 and uncached):
                return
            sequence = self._admit(most, 0)
            if sequence is None:
                self._full = True
                return
            admitted.append(sequence)
            if uncached:
                chunks.append(Chunk(sequence, sequence.computed_tokens, most, most == uncached))
                input_left -= self._paged(most)
                chunk_left -= self._paged(most)
            if expected.left <= 0:
                self._full = True
            if input_left <= 0 or chunk_left <= 0:
                return

    def commit(self, batch: Batch, steps: int) -> list[Sequence]:
        """The step ran ``steps`` times."""
        if not batch.chunks and not batch.preempted:
            self._expected.ratio.decoded(steps)
        return super().commit(batch, steps)

    def _give_blocks(self, sequence: Sequence) -> None:
        super()._give_blocks(sequence)
        self._full = False

    def finish(self, sequence: Sequence) -> list[Sequence]:
        """Take out ``sequence`` wherever it is; its blocks are given back at once."""
        self._full = False
        return super().finish(sequence)
