"""What the stand-in server is to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from servewise.errors import InputError
from servewise.measure.mock.certificate import Certificate
from servewise.measure.mock.fault import Fault
from servewise.measure.mock.shape import VLLM, Shape


@dataclass(frozen=True, slots=True, kw_only=True)
class MockPlan:
    """An exact schedule, counted from when the last byte of a request arrived (the kernel's stamp where there is one).

    The first token leaves after a time drawn evenly from ``first_s`` [s] (or the ``first_table_s`` in turn, in order
    of arrival), plus ``prefill_s_per_token`` for each prompt token that was not cached; every later one ``gap_s``
    after the one before. An event with several tokens leaves when its last one is due, the first event at the first
    token's time. ``tokens``: the most that an answer has (None: as many as are asked for, or 64).

    ``slots``: at most so many requests are served at once, the others wait in order of arrival (None: all are); with
    ``queue`` more than so many waiting are answered 429 (None: no bound). A slot is free again when its last token
    is *due*, so that a queue has the schedule's exact times however late the machine is.

    ``shape`` is the dialect. ``fault`` strikes every request, or a ``fault_share`` of them at random, ``faults`` those
    with a given number in order of arrival. A request may ask for a shape or a fault itself: by a header
    ``x-mock: NAME``, its ``user`` field ``mock:NAME``, or a model name that ends in ``!NAME``.

    ``cached_tokens`` are said of every prompt (0: the usage has no such field), or with ``prefix_block`` those that the
    blocks of so many words which came before really share. ``kv_tokens`` is the pool of which ``/metrics`` tells the
    use. A prompt's tokens are its words times ``tokens_per_word`` and ``template_tokens`` for a chat; over
    ``context_tokens`` in all is answered 400. ``changed_share``: a quantised build that says the runner-up that often.
    ``key``: other keys are answered 401. ``tls``: with a ``certificate`` of that kind. ``redirect_to``: where a 307
    points. ``tick_s``: what is due is sent together this often [s] (0: each in its time).
    """

    first_s: tuple[float, float] = (0.200, 0.220)
    first_table_s: tuple[float, ...] = ()
    gap_s: float = 0.020
    tokens: int | None = None
    prefill_s_per_token: float = 0.0
    slots: int | None = None
    queue: int | None = None
    shape: Shape = VLLM
    fault: Fault | None = None
    fault_share: float = 1.0
    faults: tuple[tuple[int, Fault], ...] = ()
    cached_tokens: int = 0
    prefix_block: int = 0
    kv_tokens: int = 1_000_000
    tokens_per_word: float = 1.0
    template_tokens: int = 0
    context_tokens: int | None = None
    changed_share: float = 0.0
    seed: int = 0
    model: str = "mock"
    key: str | None = None
    tls: bool = False
    certificate: Certificate = "self-signed"
    retry_after: str | None = "1"
    redirect_to: str = "/elsewhere"
    tick_s: float = 0.0
    host: Literal["127.0.0.1", "::1"] = "127.0.0.1"

    def __post_init__(self) -> None:
        """Refuse what has no meaning."""
        low, high = self.first_s
        times = (low, high - low, self.gap_s, self.prefill_s_per_token, self.tick_s, *self.first_table_s)
        if not all(0 <= each < 1e9 for each in times):
            raise InputError("times are 0 or more seconds, and first_s is (least, most)", where="MockPlan")
        if not (0 <= self.fault_share <= 1 and 0 <= self.changed_share <= 1):
            raise InputError("a share lies between 0 and 1", where="MockPlan")
        counts = (self.tokens, self.slots, self.shape.tokens_per_event)
        if any(each is not None and each < 1 for each in counts):
            raise InputError("tokens, slots and tokens_per_event are 1 or more", where="MockPlan")
