"""``servewise fleet``: its options reach the question, its answer has the contract's form, mistakes are one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.running import invoke, workload

MODEL = ("llama-2-13b", "--accelerator", "a100-80gb", "--seeds", "1", "--processes", "1")


def asked(folder: Path, *more: str) -> list[str]:
    """The command on a small workload."""
    return ["fleet", *MODEL, "--workload", workload(folder), "--rate", "2", *more]


def test_json_is_one_document(tmp_path: Path) -> None:
    """Schema, conditions, rows by router and split, replicas; each caveat with its cure."""
    found = invoke(*asked(tmp_path, "--router", "round-robin,power-of-two", "--disaggregate", "1P1D", "--json"))
    document = json.loads(found.stdout)

    assert (found.exit_code, found.stderr) == (0, "")
    assert document["schema"] == "servewise.fleet/1"
    assert [(row["layout"], row["router"]) for row in document["result"]["rows"]] == [
        ("2 mixed", "round-robin"),
        ("2 mixed", "power-of-two"),
        ("1P1D", "round-robin"),
        ("1P1D", "power-of-two"),
    ]
    assert len(document["result"]["replicas"]) == 8
    assert all(document["conditions"].get(key) for key in ("hardware", "load", "lengths", "precision", "policy"))
    assert all(set(each) == {"code", "message", "cure"} for each in document["caveats"])


def test_every_option_reaches_the_answer(tmp_path: Path) -> None:
    """Failures, autoscaling, further replicas, settings and prices are in the conditions or the rows."""
    found = invoke(
        *asked(tmp_path, "--replicas", "2", "--also", "1:h100-sxm@2", "--fail", "r0@1s:3s", "--fail", "r1@2s"),
        *("--on-failure", "continue", "--autoscale", "load=0.9,max=4,every=2s", "--router", "prefix-aware"),
        *("--router-set", "balance_abs_threshold=4", "--slots", "16", "--prefix-cache", "--price", "2", "--json"),
    )
    document = json.loads(found.stdout)
    conditions = document["conditions"]

    assert found.exit_code == 0
    assert "1 replicas of 1 x NVIDIA H100" in conditions["hardware"]
    for words in (
        "16 slots",
        "prefix cache",
        "r0 at 1 s to 3 s, r1 at 2 s for good: continue",
        "autoscaled to load 0.9",
    ):
        assert words in conditions["policy"]
    assert document["result"]["rows"][0]["usd"] is not None


def test_speculation_reaches_the_answer(tmp_path: Path) -> None:
    """Every option of it is in the conditions or the rows; pools apart refuse it in one line."""
    speculating = ("--speculate", "ngram", "--acceptance", "0.8,0.5", "--draft-tokens", "2", "--hit-rate", "0.9")
    further = ("--speculate-until-batch", "6", "--draft-overhead", "1ms", "--policy", "vllm")
    found = invoke(*asked(tmp_path, *speculating, *further, "--json"))
    document = json.loads(found.stdout)
    (row,) = document["result"]["rows"]

    assert found.exit_code == 0
    words = "2 tokens drafted by n-gram, none above batch 6, acceptance 0.8, 0.5, 0.9 hits, 1 ms a draft pass"
    assert words in document["conditions"]["policy"]
    assert 1 < row["tokens_per_verification"] < 3
    assert {"independent-acceptance", "drafting-on-the-host"} <= {each["code"] for each in document["caveats"]}
    apart = invoke(*asked(tmp_path, *speculating, "--disaggregate", "1P1D"))
    assert apart.exit_code == 2
    assert apart.stderr.count("\n") == 1
    assert "speculate: " in apart.stderr


def test_tables_for_people(tmp_path: Path) -> None:
    """Without --json: the tables, within 80 columns."""
    found = invoke(*asked(tmp_path, "--disaggregate", "all", "--replicas", "3", "--link", "50GB/s:10us", "--overlap"))

    assert found.exit_code == 0
    assert "KV caches on their way" in found.stdout
    assert max(map(len, found.stdout.splitlines())) <= 80


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (["--router", "fastest"], "router"),
        (["--router-set", "speed=1"], "speed"),
        (["--fail", "later"], "r0@60s:120s"),
        (["--autoscale", "mood=1"], "mood"),
        (["--disaggregate", "2X2"], "2P2D"),
        (["--link", "string"], "link"),
        (["--also", "many"], "COUNT:ACCELERATOR"),
        (["--on-failure", "pray"], "retry, continue, fail"),
        (["--replcas", "2"], "--replicas"),
    ],
)
def test_mistakes_are_one_line(wrong: list[str], words: str, tmp_path: Path) -> None:
    """Exit code 2, one line on stderr that says what to do, nothing on stdout."""
    found = invoke(*asked(tmp_path, *wrong))

    assert found.exit_code == 2
    assert found.stdout == ""
    assert found.stderr.count("\n") == 1
    assert words in found.stderr
