"""A decode group whose members verify draft tokens: each gains from 1 to K + 1 tokens a step, never beyond its end."""

from __future__ import annotations

from servewise.batching.decodegroup import FOREVER, JOINS, DecodeGroup
from servewise.batching.sequence import Sequence
from servewise.batching.speculative.acceptance import Draws
from servewise.batching.speculative.draft_length import DraftLength
from servewise.batching.speculative.tally import Tally


class SpeculativeGroup(DecodeGroup):
    """No two steps are alike, so none is skipped; a step costs one pass over the members.

    K is chosen when a step ends and when a member leaves, not when one joins: an engine drafts for the next step at the
    end of the last, and what was reserved for the members stays enough.

    Blocks: a step is planned only where every member could keep all its drafts, and, where the drafter has a cache of
    its own (``looks_ahead``), draft K more behind them: vLLM's ``num_lookahead_tokens`` on top of the K + 1 scheduled
    (vllm/v1/core/kv_cache_manager.py ``allocate_slots``, v0.11). Never beyond the tokens that a member will ever store,
    so that one alone always fits; vLLM stops at the longest context only. What was not kept is given back at the end of
    the step. vLLM leaves those blocks with their sequence, which fills them later; since the next step asks for them
    again here, as many sequences fit. ``below_window`` is by how much ``windowed_tokens`` would grow with all kept.
    """

    def __init__(
        self,
        block_tokens: int,
        *,
        grows: bool,
        window_tokens: int | None = None,
        draws: Draws,
        length: DraftLength,
        looks_ahead: bool = True,
        tally: Tally | None = None,
    ) -> None:
        super().__init__(block_tokens, grows=grows, window_tokens=window_tokens)
        self.tally = tally or Tally()
        self.drafted = 0
        self._draws, self._length, self._looks_ahead = draws, length, looks_ahead
        self._members: dict[int, tuple[Sequence, int]] = {}  # by joining: the member, and where its draws start
        self._gains: list[int] | None = None  # of the step to come, in the members' order
        self._by_count: list[int] = []
        self._next_blocks: int | None = None

    def join(self, sequence: Sequence) -> None:
        """Take in a sequence whose prompt is computed and whose newest token is not yet in the cache."""
        join = next(JOINS)
        sequence.join = join
        self._members[join] = sequence, self._draws.stream(sequence.serial)
        self.size += 1
        self.context_tokens += sequence.computed_tokens
        if self.size == 1:
            self._choose()
        self._changed()

    def leave(self, sequence: Sequence) -> None:
        """Let a sequence go before its end: preempted, cancelled, or finished early."""
        if not sequence.join:
            raise AssertionError(f"sequence {sequence.serial} is not decoding")
        self._out(sequence)
        self._choose()
        self._changed()

    def generated(self, sequence: Sequence) -> int:
        """Tokens that a member has made."""
        return sequence.generated

    def _choose(self) -> None:
        self.drafted = self._length.choose(self.size, self.context_tokens) if self.size else 0

    def _out(self, sequence: Sequence) -> None:
        del self._members[sequence.join]
        sequence.join = 0
        self.size -= 1
        self.context_tokens -= sequence.computed_tokens

    def _changed(self) -> None:
        """The members are others, or elsewhere, or draft another number."""
        self._gains = self._next_blocks = None
        window = self.window_tokens
        if window is not None:
            held = [member.computed_tokens for member, _ in self._members.values()]
            new = 1 + self.drafted
            self.windowed_tokens = sum([min(tokens, window) for tokens in held])
            self.below_window = sum([min(tokens + new, window) for tokens in held]) - self.windowed_tokens

    def steps_to_next_end(self) -> int:
        """1 while there are members: the next step is like no other."""
        return 1 if self.size else FOREVER

    def steps_to_crossing(self) -> int:
        """1 likewise."""
        return 1 if self.size else FOREVER

    def steps_within(self, blocks: int, most: int) -> int:
        """1 where the next step's blocks are there."""
        return min(most, 1) if not self.grows or self.blocks_for_next() <= blocks else 0

    def blocks_for_next(self) -> int:
        """New blocks that the next step may take: every draft kept, and as many drafted behind them."""
        if self._next_blocks is None:
            self._next_blocks = self._blocks([self._reserved(self.drafted)] * self.size)
        return self._next_blocks

    def blocks_to_join(self, sequence: Sequence) -> int:
        """New blocks that ``sequence``, its stored KV moved in, would take with all its drafts."""
        tokens = sequence.stored_tokens
        return self._more(sequence, tokens, self._reserved(self._to_draft(tokens)))

    def tokens_to_join(self, sequence: Sequence) -> int:
        """Its next token, and its drafts."""
        return 1 + self._to_draft(sequence.stored_tokens)

    def _to_draft(self, tokens: int) -> int:
        """Draft tokens of a sequence that joins with ``tokens`` stored."""
        return self.drafted if self.size else self._length.choose(1, tokens)

    def _reserved(self, drafted: int) -> int:
        """Tokens that a member may store in a step."""
        return 1 + drafted * (2 if self._looks_ahead else 1)

    def blocks_for(self, steps: int) -> int:
        """New blocks that the next step takes, by what is kept; ``steps`` is 1."""
        if steps != 1:
            raise AssertionError(f"no two steps are alike, asked for {steps}")
        return self._blocks(self._drawn()) if self.grows else 0

    def _blocks(self, gains: list[int]) -> int:
        more, members = self._more, zip(self._members.values(), gains, strict=True)
        return sum([more(each, each.computed_tokens, gain) for (each, _), gain in members])

    def _more(self, sequence: Sequence, tokens: int, gain: int) -> int:
        """Blocks that ``gain`` tokens after ``tokens`` take."""
        most = sequence.prompt_tokens + sequence.output_tokens - 1  # the last token is never stored
        after = tokens + gain
        return -(-(after if after < most else most) // self.block_tokens) + (-tokens // self.block_tokens)

    def drafting(self) -> int:
        """How many members have a draft in the step to come."""
        hits = self._draws.hits
        return sum([hits(stream, member.generated) for member, stream in self._members.values()])

    def windowed_undrafted(self) -> int:
        """Of ``below_window``, the tokens of drafts that members without a draft do not have in the step to come."""
        window, drafted, hits = self.window_tokens, self.drafted, self._draws.hits
        if window is None:
            return 0
        missing = [
            each.computed_tokens + 1 for each, stream in self._members.values() if not hits(stream, each.generated)
        ]
        return sum([min(tokens + drafted, window) - min(tokens, window) for tokens in missing])

    def _drawn(self) -> list[int]:
        """What each member gains in the step to come."""
        if self._gains is None:
            k, accepted = self.drafted, self._draws.accepted
            self._by_count = by_count = [0] * (k + 1)
            self._gains = gains = []
            for member, stream in self._members.values():
                generated = member.generated
                kept = accepted(stream, generated, k) if k else 0
                by_count[kept] += 1
                left = member.output_tokens - generated
                gains.append(kept + 1 if kept < left else left)
        return self._gains

    def advance(self, steps: int) -> list[Sequence]:
        """Every member gains its tokens of one step; returns those that end, by serial, already out."""
        if steps != 1:
            raise AssertionError(f"no two steps are alike, asked for {steps}")
        gains, ended = self._drawn(), []
        missed = self.size - self.drafting() if self.drafted and self._draws.acceptance.hit_rate < 1 else 0
        for (member, _), gain in zip(self._members.values(), gains, strict=True):
            member.generated += gain
            member.computed_tokens += gain
            if member.generated == member.output_tokens:
                ended.append(member)
        gained = sum(gains)
        self.step += 1
        self.context_tokens += gained
        self.tally.add(self.drafted, self._by_count, gained, missed)
        self._length.observe(self.drafted, self._by_count)
        for member in ended:
            self._out(member)
        self._choose()
        self._changed()
        return sorted(ended, key=_serial)


def _serial(sequence: Sequence) -> int:
    return sequence.serial
