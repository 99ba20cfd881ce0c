"""``bench`` against a stand-in server over real sockets: what it says must be what the server did."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.measure.drive.plain_server import END, HEAD, event, read_request, served

from servewise.ask.bench import Benched, bench
from servewise.ask.bench_options import BenchOptions
from servewise.errors import InputError, RunFailed, UnknownName
from servewise.measure.mock.fault import Fault
from servewise.measure.mock.plan import MockPlan
from servewise.measure.mock.process import RunningMock, running_mock
from servewise.measure.mock.shape import reshaped
from servewise.records.run_directory import read_run

FAST: dict[str, Any] = {"first_s": (0.02, 0.02), "gap_s": 0.005}
KNOWN: dict[str, Any] = {"model": "mock", "hardware": "2 cores", "precision": "bf16"}
SMALL: dict[str, Any] = {"input_tokens": "40", "output_tokens": "6", "repeats": 1, "warmup": 1}


@pytest.fixture(scope="module")
def server() -> Iterator[RunningMock]:
    """A server without faults, shared by the tests that only measure."""
    with running_mock(MockPlan(**FAST, prefix_block=8)) as found:
        yield found


def measured(url: str, **options: Any) -> Benched:
    """A small measurement."""
    return bench(url, BenchOptions(**KNOWN | SMALL | options))


def row(found: Benched, place: int = 0) -> dict[str, Any]:
    """A row of the answer."""
    rows: list[dict[str, Any]] = found.answer.result["rows"]
    return rows[place]


def codes(found: Benched) -> set[str]:
    """The caveats' codes."""
    return {each.code for each in found.answer.caveats}


def test_littles_law_holds_over_real_sockets(server: RunningMock) -> None:
    """Streams = throughput x mean end-to-end latency at each concurrency, on any machine however loaded."""
    found = measured(server.url, concurrency=(1, 6), requests=120)  # of 48 the edges take a tenth

    for place, streams in enumerate((1, 6)):
        each = row(found, place)
        assert each["requests_per_s"] * each["e2e_s"]["mean"] == pytest.approx(streams, rel=0.1)
        assert each["concurrency"] == streams
        assert (each["requests"], each["errors"]) == (120, 0)
    assert row(found)["tpot_s"]["p50"] >= 0.005 * 0.9
    assert row(found)["ttft_s"]["p50"] >= 0.02 * 0.9
    assert row(found)["counted_by"] == {"usage": 120}
    assert row(found)["tokens_per_event"] == 1
    assert row(found)["prompt_tokens_mean"] == 40
    assert row(found)["output_tokens_mean"] == 6


def test_the_rows_counts_are_those_of_the_servers_log(server: RunningMock) -> None:
    """Requests and tokens of the record, the warm-up and the probes together are all that the server saw."""
    server.forget()
    found = measured(server.url, concurrency=(3,), requests=30, warmup=4)
    log = server.log()

    probes = [each for each in log if each.tokens in (1, 8)]
    assert len(log) == 30 + 4 + len(probes)
    assert len(probes) == 4
    assert row(found)["requests"] == 30


def test_an_open_loop_reports_asked_and_achieved_arrivals(server: RunningMock) -> None:
    """60 constant arrivals at 40/s: asked CV is 0, the rate sent is the rate asked, both clocks of TTFT are there."""
    found = measured(server.url, rate=(40.0,), requests=60, arrivals="constant")
    arrivals = row(found)["arrivals"]

    assert row(found)["rate_per_s"] == 40
    assert row(found)["concurrency"] is None
    assert arrivals["asked"]["cv"] == pytest.approx(0, abs=1e-6)
    assert arrivals["asked"]["rate_per_s"] == pytest.approx(40)
    assert arrivals["sent"]["rate_per_s"] == pytest.approx(40, rel=0.1)
    assert row(found)["ttft_s"]["p50"] >= row(found)["ttft_from_sent_s"]["p50"] - 1e-9


def test_a_cold_run_hits_nothing_and_the_same_texts_again_hit_everything(server: RunningMock) -> None:
    """Cold: no block of one run is in another. As-is with one seed: the second run repeats the first's texts."""
    options: dict[str, Any] = {"concurrency": (2,), "requests": 10, "input_tokens": "64"}
    cold = [measured(server.url, prefix_cache="cold", **options) for _ in range(2)]
    same = [measured(server.url, prefix_cache="as-is", seed=77, **options) for _ in range(2)]

    assert [row(each)["cached_tokens"] for each in (*cold, same[0])] == [0, 0, 0]
    assert row(same[1])["cached_tokens"] >= 0.8 * 64 * 10


def test_a_warm_run_finds_its_prefixes_and_a_cold_one_misses_each_once(server: RunningMock) -> None:
    """2 groups of 64 shared tokens: warm hits in all of 12 requests; cold lacks at most the first of each group."""
    options: dict[str, Any] = {"concurrency": (1,), "requests": 12, "shared_prefix": 64, "prefix_groups": 2}
    warm, cold = (measured(server.url, prefix_cache=each, warmup=0, **options) for each in ("warm", "cold"))
    short = measured(server.url, prefix_cache="warm", warmup=0, **options | {"shared_prefix": 16})

    assert row(warm)["cached_tokens"] == 12 * 64
    assert row(cold)["cached_tokens"] == 10 * 64
    assert not (codes(warm) | codes(short)) & {"prefix-cache-not-warm"}  # 16 of 56 tokens are all that was sent before
    assert "prefix cache warm" in str(warm.answer.conditions)


def test_warm_prompts_of_a_counted_run_are_all_sent_before(server: RunningMock) -> None:
    """Without shared prefixes, all texts of the run go first, for one token each; then every block hits."""
    found = measured(server.url, concurrency=(2,), requests=8, prefix_cache="warm", input_tokens="64")

    assert row(found)["cached_tokens"] >= 0.8 * 8 * 64


def test_the_servers_own_words_lie_beside_the_clients(server: RunningMock) -> None:
    """Its metrics are scraped over the window: never more running than there are streams."""
    found = measured(server.url, concurrency=(2,), requests=60)

    assert row(found)["server"]["engine"] == "vllm"
    assert row(found)["server"]["running"]["most"] <= 2
    assert found.answer.conditions.engine == "servewise"  # as its list of models says, not whose names it speaks


def test_a_run_directory_holds_every_run_and_the_answer(server: RunningMock, tmp_path: Path) -> None:
    """Two conditions, two repeats: four folders that can be read, and the answer on top, without the key."""
    found = measured(
        server.url,
        concurrency=(1, 2),
        requests=10,
        repeats=2,
        run_dir=str(tmp_path / "d"),
        api_key="sk-secret",
        headers=("X-Team: blue-secret",),
    )
    kept = json.loads((tmp_path / "d" / "bench.json").read_text())
    runs = sorted(each for each in (tmp_path / "d").iterdir() if each.is_dir())

    assert [each.name for each in runs] == [f"concurrency-{c}-{r}" for c in (1, 2) for r in (1, 2)]
    assert kept == json.loads(found.answer.dumps())
    for each in runs:
        run = read_run(each)
        assert (run.kind, len(run.requests)) == ("measured", 10)
        assert run.conditions.hardware == "2 cores"
        assert "secret" not in (each / "run.json").read_text()
    assert {read_run(each).seed for each in runs} == {0, 1}


def test_a_searched_knee_lies_at_the_servers_slots() -> None:
    """4 slots of 50 ms answers: with 5 streams some wait 50 ms more, so TTFT p95 <= 45 ms holds up to about 4."""
    with running_mock(MockPlan(first_s=(0.02, 0.02), gap_s=0.005, slots=4)) as server:
        found = measured(
            server.url, search="concurrency", concurrency=(2,), slo="ttft_p90<=48ms", requests=32, output_tokens="7"
        )

    search = found.answer.result["search"]
    assert 1 <= search["best"] <= 5
    assert search["knee"][0] <= search["best"] < search["knee"][1]
    assert len(found.answer.result["rows"]) == len(search["tries"]) >= 3


def test_failures_are_counted_by_name_with_a_reason_each() -> None:
    """A third of the answers reset in mid-stream: none enters a latency, each is counted, one reason is shown."""
    with running_mock(MockPlan(**FAST, fault=Fault.RESET, fault_share=0.34, seed=5)) as server:
        found = measured_patiently(server.url, concurrency=(2,), requests=60)
    names = {each["outcome"]: each for each in row(found)["outcomes"]}

    assert set(names) == {"completed", "reset"}
    assert names["completed"]["count"] + names["reset"]["count"] == 60
    assert row(found)["errors"] == names["reset"]["count"] > 5
    assert names["reset"]["example"].startswith("reset")
    assert row(found)["tpot_s"]["p50"] > 0
    assert "failed-requests" in codes(found)


def measured_patiently(url: str, **options: Any) -> Benched:
    """A measurement whose probe may meet the fault too: again until it does not."""
    for _ in range(20):
        try:
            return measured(url, **options)
        except RunFailed:
            continue
    raise AssertionError("the probe always failed")


def test_a_rate_limit_is_honoured_and_counted() -> None:
    """Every text is refused once with Retry-After: each request completes, and the refusals stand in the outcomes."""
    with running_mock(MockPlan(**FAST, fault=Fault.RATE_LIMITED_ONCE, retry_after="0")) as server:
        found = measured(server.url, concurrency=(2,), requests=20, warmup=0)
    names = {each["outcome"]: each["count"] for each in row(found)["outcomes"]}

    assert names == {"completed": 20, "rate-limited, then repeated": 20}
    assert row(found)["errors"] == 0


def test_a_server_that_dies_in_mid_run_leaves_what_had_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends at its 30th request: the run is kept, marked partial, and says that the server is gone."""
    monkeypatch.setattr("servewise.measure.bench.health.GONE_S", 0.3)
    plan = MockPlan(**FAST, faults=((30, Fault.DIE),))
    with running_mock(plan) as server:
        found = measured(server.url, concurrency=(2,), duration=60.0, run_dir=str(tmp_path / "d"))

    assert found.ended == "server"
    assert "gone" in found.reason
    assert "partial-run" in codes(found)
    assert "bench --resume" in next(each.cure for each in found.answer.caveats if each.code == "partial-run")
    assert 10 <= row(found)["completed"] <= 30
    back = read_run(tmp_path / "d")
    assert [each.code for each in back.caveats] == ["partial-run"]
    assert len(back.requests) == row(found)["requests"]


@pytest.mark.parametrize(
    ("url", "options", "error", "words"),
    [
        ("{}", {"model": "mok"}, UnknownName, "did you mean mock"),
        ("{}/nowhere/v1", {}, InputError, "no such endpoint"),
        ("ftp://host", {}, InputError, "http://"),
        ("{}", {"hardware": " "}, InputError, "hardware"),
        ("{}", {"slo": "ttft<=1s"}, InputError, "slo"),
        ("{}", {"search": "rate"}, InputError, "--slo"),
        ("{}", {"concurrency": (1,), "rate": (2.0,)}, InputError, "closed or open"),
        ("{}", {"arrivals": "gamma:2"}, InputError, "--rate"),
        ("{}", {"rate": (1.0,), "arrivals": "weibull"}, InputError, "poisson"),
        ("{}", {"prefix_cache": "hot"}, UnknownName, "cold"),
        ("{}", {"prefix_cache": "warm", "duration": 1.0}, InputError, "--requests"),
        ("{}", {"prefix_groups": 3}, InputError, "shared-prefix"),
        ("{}", {"prefix_share": 0.5}, InputError, "shared-prefix"),
        ("{}", {"turns": "3"}, InputError, "sessions"),
        ("{}", {"rate": (1.0,), "think": 2.0}, InputError, "think"),
        ("{}", {"concurrency": (1,), "max_in_flight": 3}, InputError, "open loop"),
        ("{}", {"search": "rate", "slo": "ttft_p95<=1s", "concurrency": (2,)}, InputError, "concurrency"),
        ("{}", {"headers": ("nocolon",)}, InputError, "colon"),
        ("{}", {"extra": "{"}, InputError, "JSON"),
        ("{}", {"api": "responses"}, UnknownName, "chat"),
        ("{}", {"trace": "/no/such.csv", "input_tokens": "512", "output_tokens": "128"}, InputError, "no such file"),
        ("{}", {"prompts": "/no/such.txt", "input_tokens": "512"}, InputError, "/no/such.txt"),
        ("{}", {"concurrency": (0,)}, InputError, "concurrency"),
        ("{}", {"ci": 2.0}, InputError, "ci"),
        ("{}", {"run_dir": "/proc/nope"}, InputError, "/proc/nope"),
    ],
)
def test_what_the_user_can_mend_is_one_clear_line(
    server: RunningMock, url: str, options: dict[str, Any], error: type[Exception], words: str
) -> None:
    """Wrong names, paths and settings are refused with the place and the way out, before any load."""
    server.forget()
    with pytest.raises(error, match=words) as found:
        measured(url.format(server.url.removesuffix("/v1")), **options)

    assert "\n" not in str(found.value)
    assert len(server.log()) <= 2


def test_a_key_that_is_refused_is_said_and_never_shown() -> None:
    """401: one line that names the option, without the key itself."""
    with running_mock(MockPlan(key="right")) as server, pytest.raises(InputError, match="--api-key") as found:
        measured(server.url, api_key="sk-wrong")

    assert "sk-wrong" not in str(found.value)


def test_an_untrusted_certificate_names_the_option_that_trusts_it() -> None:
    """TLS signed by itself: refused with --insecure as the hint, and measured with it."""
    with running_mock(MockPlan(**FAST, tls=True)) as server:
        with pytest.raises(InputError, match="--insecure"):
            measured(server.url, concurrency=(1,), requests=4)
        found = measured(server.url, concurrency=(1,), requests=4, insecure=True)

    assert row(found)["requests"] == 4


def test_no_server_is_one_clear_line() -> None:
    """A port where nobody listens: the address and the question whether it runs."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    with pytest.raises(RunFailed, match=f"127.0.0.1:{port}.*is it running"):
        measured(f"http://127.0.0.1:{port}")


def test_an_occupied_run_directory_is_refused_before_any_traffic(server: RunningMock, tmp_path: Path) -> None:
    """Nothing is overwritten and nothing sent."""
    (tmp_path / "mine.txt").write_text("kept")
    server.forget()

    with pytest.raises(InputError, match="not empty"):
        measured(server.url, run_dir=str(tmp_path))
    assert len(server.log()) == 0


def test_several_tokens_in_one_event_are_told() -> None:
    """Two tokens an event: TPOT is still a token's time, and the row says two."""
    plan = MockPlan(first_s=(0.02, 0.02), gap_s=0.01, shape=reshaped(MockPlan().shape, "two-tokens"))
    with running_mock(plan) as server:
        found = measured(server.url, concurrency=(1,), requests=10, output_tokens="10")

    assert row(found)["tokens_per_event"] == 2
    assert row(found)["tpot_s"]["p50"] == pytest.approx(0.01, rel=0.3)


def test_own_prompts_and_conversations_are_sent(server: RunningMock, tmp_path: Path) -> None:
    """A file's prompts in turn; conversations of three turns, each with the history before it."""
    path = tmp_path / "p.jsonl"
    path.write_text('{"prompt": "one two three"}\n{"prompt": "four five", "max_tokens": 3}\n')
    from_file = measured(server.url, prompts=str(path), input_tokens="512", concurrency=(1,), requests=10)
    talks = measured(server.url, sessions=2, turns="3", requests=4)

    assert row(from_file)["prompt_tokens_mean"] == pytest.approx(2.5)
    assert row(from_file)["output_tokens_mean"] == pytest.approx(4.5)
    assert row(talks)["sessions"] == 2
    assert row(talks)["requests"] == 12
    assert row(talks)["prompt_tokens_mean"] > 40


def _told(tokens: int | None) -> Callable[[socket.socket], None]:
    """A handler whose chats have two events, and a usage of so many output tokens after the learning probes."""

    def handle(peer: socket.socket) -> None:
        if peer.recv(3, socket.MSG_PEEK) == b"GET":
            peer.recv(65536)
            peer.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            return
        while request := read_request(peer):
            words = len(request.partition(b"\r\n\r\n")[2].split())
            usage = "" if tokens is None else f',"usage":{{"prompt_tokens":{words},"completion_tokens":{tokens}}}'
            last = f'data: {{"choices":[]{usage}}}\n\n'.encode()
            body = event("a") + event("b", '"stop"') + b"%x\r\n%b\r\n" % (len(last), last)
            peer.sendall(HEAD + body + END)

    return handle


@pytest.mark.parametrize(
    ("tokens", "mean", "code"),
    [
        (10**9, 2, "tokens-by-events"),
        (0, 2, "tokens-by-events"),
        (100, 100, "long-answers"),
        (None, 2, "tokens-by-events"),
    ],
)
def test_counts_that_cannot_be_are_told(tokens: int | None, mean: int, code: str) -> None:
    """6 tokens asked, 2 events: a billion are not believed, 100 are with a caveat, none are counted by events."""
    with served(_told(tokens)) as url:
        found = measured(url, concurrency=(1,), requests=4)

    assert row(found)["output_tokens_mean"] == mean
    assert code in codes(found)


def test_an_interrupt_before_any_answer_is_an_interrupt(tmp_path: Path) -> None:
    """A server that takes a minute for a token, interrupted in its run: no failure of the server."""
    plan = MockPlan(first_table_s=(*[0.01] * 4, *[60.0] * 8), gap_s=0.001)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job inherits that it is ignored

    def interrupt(server: RunningMock) -> None:
        while len(server.log()) < 5:
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGINT)

    with running_mock(plan) as server:
        hand = threading.Thread(target=interrupt, args=(server,))
        hand.start()
        with pytest.raises(KeyboardInterrupt):
            measured(server.url, concurrency=(1,), requests=4, warmup=0, run_dir=str(tmp_path / "d"))
        hand.join()
    assert len(read_run(tmp_path / "d").requests) == 1
