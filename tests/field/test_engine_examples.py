"""The examples of the engines' own documentation raise no warning; addresses in ``data/engine_examples_README.md``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from servewise.check.every import check_text

DATA = Path(__file__).parent / "data" / "engine_examples.jsonl"
EXAMPLES = [json.loads(line) for line in DATA.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("example", EXAMPLES, ids=[f"{each['engine']}-{at}" for at, each in enumerate(EXAMPLES)])
def test_the_engines_own_examples_raise_no_false_alarm(example: dict[str, Any]) -> None:
    """Each is read as its engine's, and has no error or warning but those listed as true."""
    checked = check_text(example["text"])
    alarms = [each for each in checked.findings if each.severity != "note"]

    assert {each.engine for each in checked.content.launches} == {example["engine"]}
    assert [each.code for each in alarms] == example.get("true", []), [each.why for each in alarms]


def test_there_are_examples_of_every_engine() -> None:
    """At least a dozen of each, so that the test above cannot pass on little."""
    for engine in ("vllm", "sglang", "trtllm", "llamacpp"):
        assert sum(each["engine"] == engine for each in EXAMPLES) >= 12
