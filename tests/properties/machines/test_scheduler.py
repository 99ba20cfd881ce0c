"""Every policy as a state machine, beside the books that its driver could keep from what the batches say alone."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.properties.machines.asks import BLOCK, NAMED, Ask, asks
from tests.properties.machines.bookkeeping import Books, Request
from tests.properties.machines.drawn_policies import (
    batchwise,
    budget,
    comes_and_goes,
    decides_ahead,
    decodes_first,
    joining,
    order_of,
    plain,
    prefills_apart,
    speculating,
)

from servewise.batching.batch import Batch
from servewise.batching.blockpool import BlockPool
from servewise.batching.policies import Policy
from servewise.batching.sequence import Sequence

MOST = 14  # requests at once


class SchedulerMachine(RuleBasedStateMachine):
    """Requests come, steps are planned and run once or as often as they may repeat, requests are cancelled anywhere.

    What must hold is what the documents of each engine promise, and what any scheduler owes: a request is in one
    place, has the blocks that its context needs and no others, gets its tokens once, and all end.
    """

    @initialize(
        policy=joining | joining | speculating | batchwise,
        blocks=st.none() | st.integers(2, 12) | st.integers(8, 30),
        window=st.none() | st.none() | st.integers(1, 60),
    )
    def begin(self, policy: Policy, blocks: int | None, window: int | None) -> None:
        self.policy, self.window = policy, window
        cached = bool(getattr(policy, "prefix_cache", False))
        self.pool = BlockPool(blocks, BLOCK, NAMED if cached else None)
        self.whole = self.pool.free
        self.batcher: Any = policy.batcher(self.pool, window)
        self.books = Books(preempted_last=order_of(policy) == "fcfs_last")
        self.serial, self.now_s = 0, 0.0
        self.closed = False

    @precondition(lambda self: len(self.books.requests) < MOST)
    @rule(wanted=st.lists(asks, min_size=1, max_size=5))
    def come(self, wanted: list[Ask]) -> None:
        """Requests come; one is refused only where its prompt and output do not fit, or by a rule of the policy."""
        for each in wanted:
            sequence = each.sequence(self.serial)
            self.serial += 1
            if each.stored and comes_and_goes(self.policy) and each.output > 1:
                sequence.generated, sequence.stored_tokens = 1, each.prompt
            if self.batcher.add(sequence, self.now_s):
                assert sequence.total_tokens <= self.whole * BLOCK
                self.books.come(sequence)

    @rule(seconds=st.floats(0, 5))
    def wait(self, seconds: float) -> None:
        """Time passes."""
        self.now_s += seconds

    @rule(jump=st.sampled_from([1, 1, 2, 7, 1 << 62]), times=st.integers(1, 6))
    def run(self, jump: int, times: int) -> None:
        """Some steps: each planned, then run once or more often, up to what its plan allows."""
        for _ in range(times):
            if not self._step(jump):
                return

    @precondition(lambda self: self.books.requests)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        """A request is taken out wherever it is: its blocks are free at once, but in a batch released together."""
        serial = data.draw(st.sampled_from(sorted(self.books.requests)))
        request = self.books.requests[serial]
        released = self.batcher.finish(request.sequence)
        if comes_and_goes(self.policy) or request.place == "waiting":
            assert [each.serial for each in released] == [serial]
        elif not released:
            request.place = "held"
        self._let_go(released)

    def _step(self, jump: int) -> bool:
        batch = self.batcher.plan(self.now_s)
        if batch is None:
            self._check_idle()
            return False
        self._check_order(batch)
        self.books.planned(batch)
        self._check(batch)
        steps = min(batch.repeat, jump)
        ended = self.batcher.commit(batch, steps)
        self.books.ran(batch, steps)
        self._check_ends(ended)
        self._let_go(ended)
        return True

    def _let_go(self, released: list[Sequence]) -> None:
        for each in released:
            assert each.blocks == 0 or each in self._ending()
            self.books.gone(each.serial)

    def _ending(self) -> list[Sequence]:
        """Who is released, but has its blocks until the next step has run: where decisions lag a step."""
        batcher = getattr(self.batcher, "batcher", self.batcher)  # within a lookup's
        return list(getattr(batcher, "ending", ()))

    def _check_idle(self) -> None:
        """Nothing is to be done only where nobody is there, or a batch waits to be full."""
        if comes_and_goes(self.policy):
            assert not self.books.requests
            return
        assert not self.books.at("prompt", "decoding", "held")
        if self.books.requests:
            assert not self.closed
            assert len(self.books.requests) < self.policy.slots
            assert self.batcher.wake_s() > self.now_s

    def _check_order(self, batch: Batch) -> None:
        """Who is let in is who was to be let in next, by the order that the policy promises."""
        order = order_of(self.policy)
        admitted = [each.serial for each in batch.admitted]
        if order == "priority" and not decides_ahead(self.policy):
            ranked = sorted(self.books.queue, key=self._rank)
            assert admitted == ranked[: len(admitted)]
        if order in ("fcfs", "fcfs_last") and not batch.preempted:
            assert admitted == self.books.queue[: len(admitted)]

    def _rank(self, serial: int) -> tuple[int, int]:
        return self.books.requests[serial].sequence.priority, serial

    def _check(self, batch: Batch) -> None:
        decoding, in_prompt = self.books.at("decoding"), self.books.at("prompt")
        self._check_counts(batch, decoding)
        self._check_chunks(batch, in_prompt)
        self._check_promises(batch, decoding)

    def _check_counts(self, batch: Batch, decoding: list[Request]) -> None:
        """Slots, rows and reads are those of the books."""
        running = self.books.at("prompt", "decoding", "held")
        assert batch.running == len(running) <= self.policy.slots
        assert batch.waiting == len(self.books.queue) == self.batcher.waiting_count
        rows = decoding if comes_and_goes(self.policy) else running
        assert batch.decodes in (0, len(rows))
        ending = sum(chunk.ends_prompt for chunk in batch.chunks)
        assert batch.active == (len(decoding) if batch.decodes else 0) + ending
        if batch.decodes and not batch.drafting:
            new = 1 + batch.drafted
            reads = [each.kv + new if each.place == "decoding" else each.kv for each in rows]
            assert batch.context_tokens == sum(reads)
            if self.window is not None:
                assert batch.windowed_tokens == sum(min(read, self.window) for read in reads)
        if batch.drafting:
            assert batch.drafting <= batch.decodes
            assert batch.context_tokens == sum(each.kv + 1 for each in rows) + batch.drafting * batch.drafted

    def _check_chunks(self, batch: Batch, in_prompt: list[Request]) -> None:
        """Parts of prompts follow on what is there, one for a request, and end where the prompt ends."""
        assert len({chunk.sequence.serial for chunk in batch.chunks}) == len(batch.chunks)
        known = {each.sequence.serial: each for each in in_prompt}
        for sequence, computed, new, ends_prompt in batch.chunks:
            request = known[sequence.serial]
            target = sequence.prompt_tokens + request.made
            assert new >= 1
            assert computed == request.kv == sequence.computed_tokens
            assert computed + new <= target == sequence.target_tokens
            assert ends_prompt == (computed + new == target)

    def _check_promises(self, batch: Batch, decoding: list[Request]) -> None:
        """The token budget, and whether a step decodes beside prompts."""
        limit = budget(self.policy)
        new = batch.decodes * (1 + batch.drafted) + sum(chunk.new_tokens for chunk in batch.chunks)
        if limit is not None and batch.chunks:
            assert new <= limit
        if decodes_first(self.policy):
            assert batch.decodes == len(decoding)
        if prefills_apart(self.policy):
            assert not (batch.chunks and batch.decodes)
        if batch.chunks or batch.preempted or batch.drafted:
            assert batch.repeat == 1
        assert batch.repeat >= 1
        if batch.decodes and comes_and_goes(self.policy):
            left = min(each.sequence.output_tokens - each.made for each in decoding)
            assert batch.repeat <= left

    def _check_ends(self, ended: list[Sequence]) -> None:
        """Those end who have all their tokens, no other; their last token is not in the cache."""
        over = {each.sequence.serial for each in self.books.at("decoding") if each.over}
        if comes_and_goes(self.policy):
            assert {each.serial for each in ended} == over
        for each in ended:
            request = self.books.requests[each.serial]
            if request.place == "decoding":
                assert each.generated == request.made == each.output_tokens
                assert each.computed_tokens == request.kv == each.prompt_tokens + each.output_tokens - 1
        for request in self.books.at("decoding"):
            if request.over:
                request.place = "held"

    @invariant()
    def everyone_is_in_one_place(self) -> None:
        """The batcher has the requests of the books, each once, and the decoding ones in its group."""
        here = [each.serial for each in self.batcher.unreleased()]
        assert sorted(here) == sorted(self.books.requests)
        decoding = self.books.at("decoding")
        assert self.batcher.group.size == len(decoding)
        assert self.batcher.group.context_tokens == sum(each.kv for each in decoding)
        if self.window is not None:
            assert self.batcher.group.windowed_tokens == sum(min(each.kv, self.window) for each in decoding)
        for request in self.books.requests.values():
            assert bool(request.sequence.join) == (request.place == "decoding")

    @invariant()
    def blocks_are_what_contexts_need(self) -> None:
        """Free, kept and held blocks are all there are; who runs holds at least what it has in the cache."""
        private, shared = 0, set()
        grows = self.batcher.group.grows
        for each in [*self.batcher.unreleased(), *self._ending()]:
            request = self.books.requests.get(each.serial)
            kv = each.computed_tokens if request is None else request.kv
            shared.update(each.block_hashes[: each.shared])
            if request is not None and request.place == "waiting":
                assert each.blocks == each.shared == 0
                continue
            decodes = request is None or request.place == "decoding"
            alone = self.pool.private_blocks(each, kv) if grows and decodes else each.blocks
            assert alone + each.shared * (NAMED // BLOCK) >= self.pool.blocks_for(kv)
            private += alone
        held = private + len(shared) * (NAMED // BLOCK)
        assert self.pool.free + self.pool.kept_blocks + held == self.whole
        assert min(self.pool.free, self.pool.kept_blocks) >= 0

    @invariant()
    def the_host_holds_what_was_swapped(self) -> None:
        """Room on the host is never owed, and is taken by those alone whose KV lies there."""
        room = getattr(plain(self.policy), "swap_blocks", 0)
        if not getattr(self.batcher, "moves_kv", False):
            return
        out = [each for each in self.books.at("waiting") if each.was_admitted and each.sequence.stored_tokens]
        within = getattr(self.batcher, "batcher", self.batcher)  # a lookup's
        assert within._way_back.free == room - sum(self.pool.blocks_for(each.sequence.stored_tokens) for each in out)

    @invariant()
    def first_come_first_served(self) -> None:
        """First admissions go by arrival, where that was promised."""
        if order_of(self.policy).startswith("fcfs"):
            assert self.books.first_admitted == sorted(self.books.first_admitted)

    def teardown(self) -> None:
        """No more come: all end, within steps in proportion to their tokens; then the pool is whole."""
        if not hasattr(self, "batcher"):
            return
        self.batcher.close()
        self.closed = True
        self.now_s += 100.0
        tokens = sum(each.sequence.total_tokens for each in self.books.requests.values())
        steps = 0
        while self._step(1):
            self.everyone_is_in_one_place()
            self.blocks_are_what_contexts_need()
            steps += 1
            assert steps <= 20 * (tokens + 1), "livelock"
        assert not self.books.requests
        assert self.pool.free + self.pool.kept_blocks == self.whole
        group = self.batcher.group
        assert group.size == group.context_tokens == group.windowed_tokens == group.below_window == 0


TestScheduler: Any = SchedulerMachine.TestCase
TestScheduler.settings = settings(max_examples=200, stateful_step_count=30, deadline=None)
