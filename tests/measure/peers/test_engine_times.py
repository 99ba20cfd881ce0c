"""Requests with the times of vLLM's engine, as JSONL and as CSV."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from servewise.errors import InputError
from servewise.measure.peers.load import read_results
from servewise.metrics import latency

STAMPED = [
    {"request_id": "b", "input_toks": 20, "output_toks": 5, "arrival_time": 1000.5, "queued_ts": 50.75,
     "scheduled_ts": 50.8, "first_token_ts": 51.5, "last_token_ts": 52.0},
    {"request_id": "a", "input_toks": 10, "output_toks": 3, "arrival_time": 1000.0, "queued_ts": 50.0,
     "scheduled_ts": 50.0, "first_token_ts": 50.25, "last_token_ts": 50.75},
]  # fmt: skip


def test_the_two_clocks_meet_at_the_first_request(tmp_path: Path) -> None:
    """The first request is queued as it arrives; the second, 0.5 s later, waits a second for its first token."""
    path = tmp_path / "requests.jsonl"
    path.write_text("\n".join(map(json.dumps, STAMPED)), "utf-8")
    (run,) = read_results(path)

    assert latency.ttft(run.requests).tolist() == [0.25, 1.0]
    assert latency.tpot(run.requests).tolist() == [0.25, 0.125]
    assert latency.e2e(run.requests).tolist() == [0.75, 1.5]
    assert list(run.requests.prompt_tokens) == [10, 20]
    assert not run.itl_known
    assert {each.code for each in run.caveats} == {"engine-clock"}


def test_a_csv_says_the_same(tmp_path: Path) -> None:
    """Times from the first request on, in a CSV file."""
    path = tmp_path / "requests.csv"
    path.write_text(
        "request_id,input_toks,output_toks,arrival_s,queued_s,scheduled_s,first_token_s,last_token_s\n"
        "a,10,3,0.0,0.0,0.0,0.25,0.75\nb,20,5,0.5,0.75,0.8,1.5,2.0\n",
        "utf-8",
    )
    (run,) = read_results(path)

    assert latency.ttft(run.requests).tolist() == [0.25, 1.0]
    assert latency.e2e(run.requests).tolist() == [0.75, 1.5]


def test_a_request_without_an_answer_failed(tmp_path: Path) -> None:
    """No first token: no answer, told as a failure."""
    path = tmp_path / "requests.jsonl"
    path.write_text(json.dumps(STAMPED[1] | {"first_token_ts": None, "last_token_ts": None}), "utf-8")
    (run,) = read_results(path)

    assert list(run.requests.output_tokens) == [0] or list(run.requests.status) != [0]


def test_a_request_without_arrival_is_refused(tmp_path: Path) -> None:
    """Its line is named."""
    path = tmp_path / "requests.jsonl"
    path.write_text(json.dumps(STAMPED[0] | {"arrival_time": None}), "utf-8")

    with pytest.raises(InputError, match="request 0"):
        read_results(path)
