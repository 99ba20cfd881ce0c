"""Results as files: conditions, percentiles, failures, repeats."""

from __future__ import annotations

import json

from tests.check.checked import codes, the
from tests.measure.peers.samples import vllm

from servewise.ask.size import size

CONDITIONS = {"hardware": "1 x L4", "load": "8 streams", "lengths": "512 in", "precision": "bf16"}


def own(n: int, errors: int = 0, **conditions: str) -> str:
    """A bench answer with one row."""
    row = {"errors": errors, "ttft_s": {"p50": 0.1, "p95": 0.2, "p99": 0.3, "n": n}}
    document = {"schema": "servewise.bench/1", "conditions": CONDITIONS | conditions, "result": {"rows": [row]}}
    return json.dumps(document | {"caveats": []})


def test_vllm_bench_does_not_say_its_hardware() -> None:
    """Its file has load and lengths, and neither accelerator nor precision."""
    found = the("latency-without-conditions", json.dumps(vllm(detailed=False)))
    assert found.figures["missing"] == ["hardware", "precision"]


def test_a_percentile_needs_requests_beyond_it() -> None:
    """0.4 of 40 requests lie beyond a p99, 6 of 600 do."""
    assert the("too-few-for-percentile", json.dumps(vllm(detailed=False))).severity == "warning"
    assert the("too-few-for-percentile", own(n=300)).severity == "note"
    assert codes(own(n=600)) == set()


def test_failures_and_repeats_are_named() -> None:
    """Failed requests are a warning, a single run a note."""
    assert the("failed-requests", json.dumps(vllm(detailed=False, failed=3))).figures["failed"] == 3
    assert the("failed-requests", own(n=600, errors=2)).figures["failed"] == 2
    assert "one-run" in codes(json.dumps(vllm(detailed=False)))


def test_all_requests_at_once_are_named() -> None:
    """An infinite rate without a cap on concurrency makes TTFT the place in the queue."""
    assert "all-at-once" in codes(json.dumps(vllm(detailed=False, max_concurrency=None)))
    assert "all-at-once" not in codes(json.dumps(vllm(detailed=False)))


def test_own_answers_carry_their_caveats() -> None:
    """Each caveat of a document is a note with its cure."""
    answer = size("llama-3.1-8b", "a100-80gb", engine="ideal")
    found = the("carried-caveat", answer.dumps())
    assert (found.place.option, found.cure) == ("ideal-engine", answer.caveats[0].cure)


def test_other_json_is_nobodys_result() -> None:
    """A package.json is read without a finding."""
    assert codes('{"name": "x", "version": "1.0.0"}') == set()
