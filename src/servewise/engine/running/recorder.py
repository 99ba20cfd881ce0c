"""Writes what the engine does into the records that the simulator writes, with the time of every token."""

from __future__ import annotations

from servewise.batching.batch import Batch
from servewise.engine.running.generation import Generation
from servewise.records.columns import RequestColumns, StepColumns, TokenTimes


class Recorder:
    """The request and step records of one run, as they grow; about 200 bytes a request and 100 a step, 8 a token."""

    def __init__(self) -> None:
        self.requests = RequestColumns(token_times=TokenTimes())
        self.steps = StepColumns()

    def ended(self, generation: Generation) -> None:
        """A request reached its end."""
        rows = self.requests
        if generation.error:
            rows.errors[len(rows)] = generation.error
        rows.id.append(generation.serial)
        rows.scheduled_s.append(generation.arrival_s)
        rows.sent_s.append(generation.arrival_s)
        rows.admitted_s.append(generation.admitted_s)
        rows.first_token_s.append(generation.first_token_s)
        rows.end_s.append(generation.end_s)
        rows.prompt_tokens.append(generation.prompt_tokens)
        rows.cached_tokens.append(generation.first_cached_tokens or 0)
        rows.output_tokens.append(len(generation.choices))
        rows.preemptions.append(generation.preemptions)
        rows.status.append(generation.status if generation.status is not None else -1)
        rows.replica.append(0)
        rows.prefill_s.append(generation.prefill_s)
        rows.preempted_s.append(generation.preempted_s)
        rows.transfer_s.append(0.0)
        assert rows.token_times is not None
        rows.token_times.append(generation.token_times)

    def stepped(self, batch: Batch, waiting: int, times_s: tuple[float, float, float, float, float]) -> None:
        """A step ran; ``times_s``: its start, when it was laid out, computed and sampled, and its end."""
        start_s, laid_out_s, computed_s, sampled_s, end_s = times_s
        rows = self.steps
        rows.start_s.append(start_s)
        rows.seconds.append(end_s - start_s)
        rows.steps.append(1)
        rows.decode_sequences.append(batch.decodes)
        rows.prefill_tokens.append(sum(chunk.new_tokens for chunk in batch.chunks))
        rows.running.append(batch.running)
        rows.waiting.append(waiting)
        rows.kv_tokens.append(batch.context_tokens)
        rows.active.append(batch.active)
        rows.plan_s.append(laid_out_s - start_s)
        rows.model_s.append(computed_s - laid_out_s)
        rows.sample_s.append(sampled_s - computed_s)
