"""A request in two parts: its prompt at a prefill server, its answer at a decode server."""

from __future__ import annotations

from servewise.records.columns import COMPLETED
from servewise.simulate.recorder import Recorder
from servewise.simulate.replica import Replica
from servewise.simulate.timed import UNSET, TimedSequence
from servewise.workload.request import Request


class Prompt(TimedSequence):
    """The part that ends with the first token; ``answer_tokens`` is the whole answer's length."""

    def __init__(self, request: Request) -> None:
        super().__init__(request)
        self.answer_tokens, self.output_tokens = self.output_tokens, 1

    @property
    def is_all(self) -> bool:
        """Whether the first token is the whole answer: nothing is left to decode."""
        return self.answer_tokens == 1


class Answer(TimedSequence):
    """The part from the second token on: its KV comes from the prefill server, where ``prompt`` ended at ``now_s``.

    The client gets the first token when the decode server admits it.
    """

    def __init__(self, prompt: Prompt, now_s: float) -> None:
        request = Request(
            prompt.serial,
            prompt.arrival_s,
            prompt.prompt_tokens,
            prompt.answer_tokens,
            prompt.block_hashes,
            prompt.priority,
            prompt.answer_hashed,
        )
        super().__init__(request)
        self.generated, self.stored_tokens = 1, prompt.prompt_tokens
        self.admitted_s, self.prefill_s, self.preempted_s = prompt.admitted_s, prompt.prefill_s, prompt.preempted_s
        self.preemptions, self.first_cached_tokens = prompt.preemptions, prompt.first_cached_tokens
        self.left_s, self.transferring = now_s, True

    def away(self, until_s: float) -> None:
        """It is admitted: for the first time, with its first token."""
        super().away(until_s)
        if self.first_token_s is UNSET:
            self.first_token_s = until_s


class PromptRecorder(Recorder):
    """Writes into ``whole`` what a prefill server does; a prompt whose answer goes on elsewhere has no record yet."""

    def __init__(self, whole: Recorder) -> None:
        super().__init__()
        self._whole = whole
        self.stepped = whole.stepped

    def ended(self, sequence: TimedSequence, now_s: float, status: int, replica: Replica) -> None:
        """The last of it, or the run's end."""
        assert isinstance(sequence, Prompt)
        if status != COMPLETED or sequence.is_all:
            self._whole.ended(sequence, now_s, status, replica)
