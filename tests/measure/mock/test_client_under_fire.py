"""The load client against every fault and every dialect that the stand-in server knows."""

from __future__ import annotations

import json
import random
import time
from collections import Counter, deque
from collections.abc import Sequence

import pytest

from servewise.measure.addressing import target_of
from servewise.measure.ask import Ask
from servewise.measure.drive.drive import drive
from servewise.measure.drive.one import send_one
from servewise.measure.drive.terms import Terms
from servewise.measure.exchange import Exchange
from servewise.measure.mock.certificate import Certificate, can_make_certificates
from servewise.measure.mock.fault import Fault
from servewise.measure.mock.log import RequestLog
from servewise.measure.mock.plan import MockPlan
from servewise.measure.mock.process import running_mock
from servewise.measure.mock.shape import SHAPES
from servewise.measure.outcome import Outcome
from servewise.measure.schedule import Due
from servewise.measure.target import Target, Timeouts

TOKENS = 8
PLAN = MockPlan(first_s=(0.03, 0.05), gap_s=0.01)
PATIENCE = Timeouts(connect_s=5.0, first_byte_s=3.0, idle_s=2.0, total_s=30.0)
CLOCKS_S = 1e-3  # between the kernel's wall clock and the monotonic one, as each side reads them
OTHER_FIELDS = ("reasoning", "reasoning-content", "some-reasoning", "tool-calls")  # the text is not all content there
LONGEST_S = 20.0  # far over the longest wait of any fault, far under hanging

OUTCOMES = {
    Fault.RESET_AT_ONCE: {Outcome.RESET},
    Fault.CLOSE_AT_ONCE: {Outcome.RESET},
    Fault.SILENT: {Outcome.TIMED_OUT},
    Fault.BAD_REQUEST: {Outcome.CLIENT_ERROR},
    Fault.UNAUTHORISED: {Outcome.UNAUTHORISED},
    Fault.FORBIDDEN: {Outcome.UNAUTHORISED},
    Fault.NOT_FOUND: {Outcome.NOT_FOUND},
    Fault.RATE_LIMITED: {Outcome.RATE_LIMITED},
    Fault.RATE_LIMITED_ONCE: {Outcome.RATE_LIMITED},
    Fault.REDIRECT: {Outcome.REDIRECTED},
    Fault.SERVER_ERROR: {Outcome.SERVER_ERROR},
    Fault.UNAVAILABLE: {Outcome.SERVER_ERROR},
    Fault.HUGE_HEAD: {Outcome.PROTOCOL},
    Fault.ENDLESS_HEAD: {Outcome.PROTOCOL},
    Fault.NOT_HTTP: {Outcome.PROTOCOL},
    Fault.HEAD_CUT: {Outcome.RESET},
    Fault.HEAD_RESET: {Outcome.RESET},
    Fault.HEAD_STALL: {Outcome.TIMED_OUT},
    Fault.ERROR_BODY: {Outcome.ERROR_IN_BODY},
    Fault.EMPTY_BODY: {Outcome.EMPTY},
    Fault.HTML_BODY: {Outcome.BAD_EVENT},
    Fault.ERROR_EVENT: {Outcome.ERROR_IN_STREAM},
    Fault.ERROR_EVENT_FIRST: {Outcome.ERROR_IN_STREAM},
    Fault.WRONG_JSON: {Outcome.BAD_EVENT},
    Fault.BAD_UTF8: {Outcome.BAD_EVENT},
    Fault.NOT_AN_OBJECT: {Outcome.BAD_EVENT},
    Fault.HALF_EVENT: {Outcome.TRUNCATED},
    Fault.HALF_EVENT_ENDED: {Outcome.TRUNCATED},
    Fault.HALF_EVENT_STALL: {Outcome.TIMED_OUT},
    Fault.GZIP: {Outcome.PROTOCOL},
    Fault.RESET: {Outcome.RESET},
    Fault.RESET_BEFORE_DONE: {Outcome.RESET},
    Fault.CLOSE: {Outcome.TRUNCATED},
    Fault.STALL: {Outcome.TIMED_OUT},
    Fault.STALL_FIRST: {Outcome.TIMED_OUT},
    Fault.EMPTY_STREAM: {Outcome.EMPTY},
    Fault.CUT_SHORT: {Outcome.TRUNCATED},
    Fault.ENDLESS_EVENT: {Outcome.PROTOCOL},
    Fault.ENDLESS_LINES: {Outcome.PROTOCOL},
    Fault.ENDLESS_STREAM: {Outcome.PROTOCOL},
    Fault.ENDLESS_TRAILER: {Outcome.PROTOCOL},
    Fault.BAD_CHUNK: {Outcome.PROTOCOL},
    Fault.LONG_CHUNK: {Outcome.TRUNCATED},
    Fault.SHORT_CHUNK: {Outcome.PROTOCOL},
    Fault.LONG_LENGTH: {Outcome.TRUNCATED},
    Fault.SHORT_LENGTH: {Outcome.TRUNCATED},
}


class AtOnce:
    """A schedule: at most ``most`` under way, in order."""

    def __init__(self, asks: Sequence[Ask], most: int) -> None:
        self._asks, self._most, self._open = deque(asks), most, 0

    def next_due_s(self) -> float | None:
        return 0.0 if self._asks and self._open < self._most else None

    def take(self, now_s: float) -> Due | None:
        if self.next_due_s() is None:
            return None
        self._open += 1
        return Due(self._asks.popleft(), now_s)

    def ended(self, exchange: Exchange) -> None:
        self._open -= 1

    @property
    def finished(self) -> bool:
        return not self._asks

    def split(self, workers: int) -> Sequence[AtOnce]:
        return [self]


def ask(serial: int, name: str = "", **more: object) -> Ask:
    """A chat that asks for the fault or shape of that name."""
    body = {
        "model": "mock",
        "messages": [{"role": "user", "content": "one two three"}],
        "max_tokens": TOKENS,
        "stream": True,
        "stream_options": {"include_usage": True},
        "user": f"mock:{name}" if name else "plain",
    }
    return Ask(serial=serial, body=json.dumps(body | more).encode(), output_tokens=TOKENS)


def target(url: str, **more: object) -> Target:
    """The client's target at ``url``."""
    return target_of(url, model="mock", timeouts=PATIENCE, **more)  # type: ignore[arg-type]


def run(asks: Sequence[Ask], at: Target, most: int = 100) -> tuple[list[Exchange], float, float]:
    """All exchanges in order of their ends, how long it took, and when it began [s, monotonic]."""
    ended: list[Exchange] = []
    begun = time.monotonic()
    drive(AtOnce(asks, most), at, start_s=begun, on_end=ended.append, terms=Terms(keep_text=True))
    return ended, time.monotonic() - begun, begun


Fire = tuple[dict[str, Exchange], dict[str, RequestLog], float, float]


@pytest.fixture(scope="module")
def fire() -> Fire:
    """Every fault but the server's death, every shape, and a plain request, all in one run."""
    names = ["", *(each.value for each in OUTCOMES), *SHAPES]
    with running_mock(PLAN) as server:
        ended, took_s, begun_s = run([ask(serial, name) for serial, name in enumerate(names)], target(server.url))
        log = {each.name: each for each in server.log()}
    assert len(ended) == len(names)
    return {names[each.ask.serial]: each for each in ended}, log, took_s, begun_s


def test_every_fault_is_in_the_table() -> None:
    """No fault is left untested; the death of the server has a test of its own."""
    assert set(OUTCOMES) == set(Fault) - {Fault.DIE}


@pytest.mark.parametrize("fault", list(OUTCOMES), ids=lambda each: each.value)
def test_a_fault_is_one_outcome_with_its_reason(fire: Fire, fault: Fault) -> None:
    """Each fault is the outcome that it is, never a success, and says why in one line."""
    exchange = fire[0][fault.value]
    assert exchange.outcome in OUTCOMES[fault], exchange.reason
    assert exchange.reason
    assert len(exchange.reason.splitlines()) == 1


def test_nothing_hangs(fire: Fire) -> None:
    """The whole run ends soon after the longest timeout of those that never end."""
    assert fire[2] < LONGEST_S


@pytest.mark.parametrize("name", ["", *SHAPES])
def test_a_shape_is_read_as_what_it_is(fire: Fire, name: str) -> None:
    """However a good answer is put into bytes: completed, the same text, every token counted, none too early."""
    exchange, log, begun_s = fire[0][name], fire[1][name], fire[3]
    assert exchange.outcome is Outcome.COMPLETED, exchange.reason
    if name not in OTHER_FIELDS:
        assert exchange.text == fire[0][""].text
    if name != "no-usage":
        assert (exchange.counted_by, exchange.output_tokens, exchange.prompt_tokens) == ("usage", TOKENS, 3)
    if name != "joined":  # two events leave in one write there
        assert len(exchange.arrivals) == len(log.sent_s)
        for arrival, before_s in zip(exchange.arrivals, log.before_s, strict=True):
            assert begun_s + arrival.time_s >= before_s - CLOCKS_S


def test_tokens_of_an_event_are_known_where_the_server_says_so(fire: Fire) -> None:
    """Usage in every event tells the tokens of each; reasoning is marked; role and usage events are no output."""
    exchanges = fire[0]
    assert [each.tokens for each in exchanges["usage-every"].arrivals] == [1] * TOKENS
    assert len(exchanges["two-tokens"].arrivals) == TOKENS / 2
    assert len(exchanges["ten-tokens"].arrivals) == 1
    assert len(exchanges["role-early"].arrivals) == TOKENS
    assert all(each.reasoning for each in exchanges["reasoning"].arrivals)
    assert all(each.reasoning for each in exchanges["reasoning-content"].arrivals)
    assert [each.reasoning for each in exchanges["some-reasoning"].arrivals] == [True] * 4 + [False] * 4
    assert len(exchanges["tool-calls"].arrivals) == TOKENS
    assert exchanges["tool-calls"].finish_reason == "tool_calls"
    assert exchanges["no-usage"].counted_by == "events"
    assert exchanges["no-usage"].output_tokens == TOKENS


def test_totals_add_up_over_a_run_of_mixed_fire() -> None:
    """Over 400 requests at 32 in flight with faults drawn at random, each ends in one outcome: the fault's own."""
    rng = random.Random(4)
    quick = [each for each in OUTCOMES if Outcome.TIMED_OUT not in OUTCOMES[each] and "endless" not in each.value]
    names = [rng.choice(["", rng.choice(quick).value]) for _ in range(400)]
    with running_mock(MockPlan(first_s=(0.001, 0.003), gap_s=0.0005)) as server:
        ended, took_s, _ = run(
            [ask(serial, name, n=serial) for serial, name in enumerate(names)], target(server.url), 32
        )
    assert sorted(each.ask.serial for each in ended) == list(range(400))
    assert sum(Counter(each.outcome for each in ended).values()) == 400
    strays = 0  # a server's words that come late, on a connection that another request has by then
    for each in ended:
        name = names[each.ask.serial]
        stray = each.outcome is Outcome.PROTOCOL and not each.fresh_connection
        strays += stray and not name
        assert stray or each.outcome in (OUTCOMES[Fault(name)] if name else {Outcome.COMPLETED}), (name, each.reason)
    assert strays <= 4
    assert took_s < LONGEST_S


def test_refused() -> None:
    """Where nobody listens every request is refused, and at once."""
    with running_mock(PLAN) as server:
        server.refuse()
        ended, took_s, _ = run([ask(serial) for serial in range(5)], target(server.url))
    assert [each.outcome for each in ended] == [Outcome.REFUSED] * 5
    assert took_s < LONGEST_S


def test_the_server_dies_in_mid_run() -> None:
    """What was under way is cut or reset, what comes after is refused, and nothing is lost."""
    asks = [ask(0), ask(1, Fault.DIE.value), *(ask(serial) for serial in range(2, 8))]
    with running_mock(PLAN) as server:
        ended, took_s, _ = run(asks, target(server.url), most=2)
        server.log()  # waits until a dying process is dead
        assert not server.alive
    outcomes = {each.ask.serial: each.outcome for each in ended}
    assert sorted(outcomes) == list(range(8))
    assert outcomes[1] in {Outcome.RESET, Outcome.TRUNCATED}
    assert outcomes[7] in {Outcome.REFUSED, Outcome.RESET}
    assert took_s < LONGEST_S


def test_rate_limited_then_served() -> None:
    """A 429 is told with its Retry-After; the same body is then served."""
    with running_mock(PLAN) as server:
        first, second = (send_one(ask(0, "429-once"), target(server.url)) for _ in range(2))
    assert (first.outcome, first.retry_after_s) == (Outcome.RATE_LIMITED, 1.0)
    assert second.outcome is Outcome.COMPLETED


def test_keys() -> None:
    """A wrong key is unauthorised, the right one serves, and neither is in the reason."""
    with running_mock(MockPlan(first_s=(0.0, 0.0), gap_s=0.0, key="right")) as server:
        wrong, right = (send_one(ask(0), target(server.url, key=key)) for key in ("wrong-key", "right"))
    assert wrong.outcome is Outcome.UNAUTHORISED
    assert "wrong-key" not in wrong.reason
    assert right.outcome is Outcome.COMPLETED


@pytest.mark.skipif(not can_make_certificates(), reason="nothing here makes a certificate")
@pytest.mark.parametrize(
    ("certificate", "words"),
    [("signed", ""), ("self-signed", "self-signed"), ("expired", "expired"), ("other-host", "mismatch")],
)
def test_certificates(certificate: Certificate, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bad one is a TLS outcome that says what is bad; where the user waives the check, the same server serves."""
    plan = MockPlan(first_s=(0.01, 0.01), gap_s=0.001, tls=True, certificate=certificate)
    with running_mock(plan) as server:
        monkeypatch.setenv("SSL_CERT_FILE", str(server.authority))  # OpenSSL's own name for the trusted roots
        asks = [ask(serial) for serial in range(3)]
        checked, *_ = run(asks, target(server.url))
        waived, *_ = run(asks, target(server.url, verify_tls=False))
    assert [each.outcome for each in checked] == [Outcome.TLS if words else Outcome.COMPLETED] * 3
    assert all(words in each.reason for each in checked)
    assert [each.outcome for each in waived] == [Outcome.COMPLETED] * 3
    assert len({each.stamped for each in waived}) == 1


@pytest.mark.parametrize("name", ["closes", "closes-unsaid", "until-close"])
def test_connections_that_the_server_closes_after_each_answer(name: str) -> None:
    """Whether it says so or not, no request is lost to it: a kept-alive connection that is gone is made anew."""
    with running_mock(MockPlan(first_s=(0.002, 0.004), gap_s=0.0)) as server:
        ended, *_ = run([ask(serial, name) for serial in range(60)], target(server.url), most=4)
    assert Counter(each.outcome for each in ended) == {Outcome.COMPLETED: 60}


def test_answers_without_a_stream() -> None:
    """A whole answer is one arrival with all its tokens counted by the server."""
    with running_mock(PLAN) as server:
        exchange = send_one(ask(0, stream=False, stream_options=None), target(server.url))
    assert (exchange.outcome, exchange.output_tokens) == (Outcome.COMPLETED, TOKENS)
    assert len(exchange.arrivals) == 1


def test_completions_too() -> None:
    """The completions API: text and token prompts, streamed, with the server's own counts."""
    with running_mock(PLAN) as server:
        at = target_of(server.url, model="mock", api="completions", timeouts=PATIENCE)
        found = {}
        for prompt, tokens in (("a b c d", 4), ([7, 8, 9], 3)):
            options = {"include_usage": True}
            body = {"model": "mock", "prompt": prompt, "max_tokens": TOKENS, "stream": True, "stream_options": options}
            found[tokens] = send_one(Ask(serial=0, body=json.dumps(body).encode(), output_tokens=TOKENS), at)
    for tokens, exchange in found.items():
        assert exchange.outcome is Outcome.COMPLETED, exchange.reason
        assert (exchange.prompt_tokens, exchange.output_tokens) == (tokens, TOKENS)
        assert exchange.text is not None
        assert len(exchange.text.split()) == len(exchange.arrivals) == TOKENS
