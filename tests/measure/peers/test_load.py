"""Other clients' results: what comes out is what the server did, not what the client made of it."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.measure.peers import samples

from servewise.errors import InputError
from servewise.measure.peers.found import PeerRun
from servewise.measure.peers.load import read_results
from servewise.metrics import latency
from servewise.metrics.summary import summarise

DOCUMENTS: dict[str, Callable[[], list[Any]]] = {
    "vllm": lambda: [samples.vllm()],
    "vllm-summary": lambda: [samples.vllm(detailed=False)],
    "guidellm": lambda: [samples.guidellm()],
    "aiperf": samples.aiperf,
    "aiperf-summary": lambda: [samples.aiperf_summary()],
    "llama-benchy": lambda: [samples.llama_benchy()],
}


def only(path: Path) -> PeerRun:
    """The one run in a file."""
    (found,) = read_results(path)
    return found


@pytest.mark.parametrize("name", ["vllm", "guidellm", "aiperf"])
def test_requests_give_the_servers_own_times(tmp_path: Path, name: str) -> None:
    """Four tokens an event and a stream that lingers: TTFT 0.2 s, TPOT 0.01 s (not 0.0111), end to end 0.9 s."""
    found = only(samples.written(tmp_path / "result.json", *DOCUMENTS[name]()))
    summary = summarise(found.requests)
    assert summary.completed == samples.COUNT
    assert summary.ttft.p50 == pytest.approx(samples.TTFT_S)
    assert summary.tpot.mean == pytest.approx(0.010)
    assert summary.tpot.p99 == pytest.approx(0.010)
    assert summary.e2e.mean == pytest.approx(samples.LATENCY_S)
    assert summary.output_tokens == samples.TOKENS * samples.COUNT
    assert summary.prompt_tokens == sum(samples.PROMPTS)
    duration = samples.STARTS_S[-1] + samples.LATENCY_S - samples.STARTS_S[0]
    assert summary.output_tokens_per_s == pytest.approx(samples.TOKENS * samples.COUNT / duration)


@pytest.mark.parametrize("name", ["vllm", "aiperf"])
def test_gaps_are_those_of_events_with_their_tokens_known(tmp_path: Path, name: str) -> None:
    """15 gaps of 40 ms a request, 4 tokens an event; and that the client calls them per token is said."""
    found = only(samples.written(tmp_path / "result.json", *DOCUMENTS[name]()))
    gaps = latency.itl_of_tokens(found.requests)
    assert (len(gaps), gaps.max()) == (15 * samples.COUNT, pytest.approx(samples.GAP_S))
    assert latency.tokens_per_event(found.requests) == 4.0
    assert "peer-itl" in {each.code for each in found.caveats}


@pytest.mark.parametrize(
    ("name", "streams"), [("vllm", 4), ("vllm-summary", 4), ("guidellm", 4), ("aiperf-summary", 4)]
)
def test_load_and_model_are_read(tmp_path: Path, name: str, streams: int) -> None:
    """Streams, model and lengths come from the file; hardware and precision, which it lacks, are "not stated"."""
    found = only(samples.written(tmp_path / "result.json", *DOCUMENTS[name]()))
    conditions = found.conditions
    assert (found.concurrency, found.rate_per_s, conditions.model) == (4, None, "org/model")
    assert (conditions.load, conditions.hardware, conditions.precision) == ("4 streams", "not stated", "not stated")
    assert conditions.lengths.endswith("tokens in, 64 out")


def test_a_rate_is_the_load(tmp_path: Path) -> None:
    """vLLM at 2.5 requests/s without a cap is an open loop; hardware named by --metadata is kept."""
    document = samples.vllm(request_rate=2.5, max_concurrency=None, hardware="1 x L4", precision="bf16")
    found = only(samples.written(tmp_path / "result.json", document))
    assert (found.concurrency, found.rate_per_s, found.conditions.load) == (None, 2.5, "2.5 requests/s")
    assert (found.conditions.hardware, found.conditions.precision) == ("1 x L4", "bf16")


def test_failures_stay_failures(tmp_path: Path) -> None:
    """3 failed of 40 in vLLM's lists; 1 errored and 1 incomplete beside 40 in GuideLLM's and AIPerf's."""
    vllm = summarise(only(samples.written(tmp_path / "v.json", samples.vllm(failed=3))).requests)
    assert (vllm.completed, vllm.failed, vllm.ttft.n) == (37, 3, 37)
    for name in ("guidellm", "aiperf"):
        found = only(samples.written(tmp_path / f"{name}.json", *DOCUMENTS[name]()))
        summary = summarise(found.requests)
        assert (summary.completed, summary.failed) == (samples.COUNT, 2)
        assert any("Internal Server Error" in each for each in found.requests.errors.values())


def test_summaries_are_told_without_intervals(tmp_path: Path) -> None:
    """Files without requests: the client's own figures, in seconds, no interval, and a caveat that says so."""
    for name in ("vllm-summary", "aiperf-summary"):
        found = only(samples.written(tmp_path / f"{name}.json", *DOCUMENTS[name]()))
        assert found.told is not None
        assert found.told.ttft.p50 == pytest.approx(samples.TTFT_S)
        assert found.told.ttft.ci95 == {}
        assert found.told.tpot.mean == pytest.approx((samples.LATENCY_S - samples.TTFT_S) / 63)
        assert found.told.completed == samples.COUNT
        assert "peer-summary" in {each.code for each in found.caveats}
    assert math.isnan(only(samples.written(tmp_path / "v.json", samples.vllm(detailed=False))).told.ttft.p95)  # type: ignore[union-attr]


def test_a_sample_of_requests_leaves_the_rates_to_the_client(tmp_path: Path) -> None:
    """GuideLLM kept 10 of 40 requests: latencies are theirs, rates what the client counted."""
    found = only(samples.written(tmp_path / "g.json", samples.guidellm(keep=10)))
    assert found.told is not None
    assert (found.told.output_tokens_per_s, found.told.ttft.n) == (290.0, 10)
    none = only(samples.written(tmp_path / "none.json", samples.guidellm(keep=0)))
    assert none.told is not None
    assert none.told.ttft.p95 == pytest.approx(samples.TTFT_S)
    assert none.told.e2e.p50 == pytest.approx(samples.LATENCY_S)


def test_vllm_before_start_times(tmp_path: Path) -> None:
    """Older detailed files know no start: latencies of the requests, rates of the client."""
    document = samples.vllm()
    del document["start_times"]
    found = only(samples.written(tmp_path / "old.json", document))
    assert found.told is not None
    assert found.told.tpot.p50 == pytest.approx(0.010)
    assert found.told.output_tokens_per_s == document["output_throughput"]


def test_vllm_queue_times_count_from_the_schedule(tmp_path: Path) -> None:
    """A request that waited 0.3 s in the client's own queue was due 0.3 s before it was sent."""
    document = samples.vllm(queue_times=[0.3] * samples.COUNT)
    summary = summarise(only(samples.written(tmp_path / "q.json", document)).requests)
    assert summary.ttft.mean == pytest.approx(0.5)
    assert summary.ttft_from_sent.mean == pytest.approx(0.2)


def test_llama_benchy_gives_a_run_for_each_level(tmp_path: Path) -> None:
    """1 and 4 streams (the filled context is none): TTFT 0.2 s, TPOT 10 ms; its decode speed is said to be that."""
    one, four = read_results(samples.written(tmp_path / "l.json", samples.llama_benchy()))
    assert [each.concurrency for each in (one, four)] == [1, 4]
    for each in (one, four):
        assert each.told is not None
        assert each.told.ttft.p50 == pytest.approx(0.2)
        assert each.told.tpot.p50 == pytest.approx(0.01)
        assert "peer-decode-speed" in {caveat.code for caveat in each.caveats}


def test_appended_results_are_a_run_each(tmp_path: Path) -> None:
    """--append-result puts an object on each line: as many runs."""
    path = samples.written(tmp_path / "runs.jsonl", samples.vllm(), samples.vllm(max_concurrency=8))
    assert [each.concurrency for each in read_results(path)] == [4, 8]


def test_no_key_leaves_a_file(tmp_path: Path) -> None:
    """Configurations hold API keys: none of what is kept does."""
    for name in ("guidellm", "aiperf-summary"):
        found = only(samples.written(tmp_path / f"{name}.json", *DOCUMENTS[name]()))
        assert "secret" not in repr((found.conditions, found.caveats))


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "null", "[[[", "7", '{"benchmarks": []}', '{"a": 1}\n{"b": ', "\xff", "[" * 5000]
)
def test_what_is_no_result_is_one_line(tmp_path: Path, text: str) -> None:
    """Anything else is refused with the clients that are known."""
    path = tmp_path / "file.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError) as caught:
        read_results(path)
    assert "\n" not in str(caught.value)


def test_an_answer_is_no_run(tmp_path: Path) -> None:
    """A document of our own is refused with what to name instead."""
    with pytest.raises(InputError, match="run directory"):
        read_results(samples.written(tmp_path / "a.json", {"schema": "servewise.bench/1"}))


ODD: tuple[Any, ...] = (None, "text", -1, 1.5, True, [], {}, [None], [[]], "1e400", 10**400, {"value": []})
SPOILED = st.sampled_from(ODD)


@given(name=st.sampled_from(sorted(DOCUMENTS)), data=st.data())
def test_spoiled_values_are_one_line_or_read(
    tmp_path_factory: pytest.TempPathFactory, name: str, data: st.DataObject
) -> None:
    """Whatever stands in place of a value: it is read or refused as wrong input, never a traceback."""
    documents = json.loads(json.dumps(DOCUMENTS[name]()))
    document = documents[data.draw(st.integers(0, len(documents) - 1))]
    for _ in range(data.draw(st.integers(0, 5))):
        inner = [each for _, each in _items(document) if isinstance(each, (dict, list)) and each]
        if not inner:
            break
        document = data.draw(st.sampled_from(inner))
    key = data.draw(st.sampled_from([key for key, _ in _items(document)]))
    document[key] = data.draw(SPOILED)
    path = samples.written(tmp_path_factory.mktemp("spoiled") / "file.json", *documents)
    with contextlib.suppress(InputError):
        for run in read_results(path):
            summarise(run.requests)


def _items(document: Any) -> list[tuple[Any, Any]]:
    return list(document.items()) if isinstance(document, dict) else list(enumerate(document))
