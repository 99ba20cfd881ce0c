"""Files of counted expert loads: what servers write and people keep, and one line for what is neither."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from servewise.deployment.expert_counts import load_counts
from servewise.errors import InputError

LAYERS = ((4.0, 0.0, 2.0), (1.0, 3.0, 2.0))
TEXTS = {
    "sglang.json": json.dumps({"logical_count": LAYERS, "rank": 0, "average_utilization_rate_over_window": None}),
    "steps.json": json.dumps({"logical_count": [[[1, 0, 2], [1, 1, 2]], [[3, 0, 0], [0, 2, 0]]]}),  # summed
    "window.json": json.dumps([[[1, 0, 2], [1, 1, 2]], [[3, 0, 0], [0, 2, 0]]]),
    "lists.json": json.dumps(LAYERS),
    "layers.json": json.dumps({"3": LAYERS[0], "4": LAYERS[1]}),
    "dense.json": json.dumps({"logical_count": [[0, 0, 0], *LAYERS]}),  # a dense layer has no tokens
    "plain.csv": "4,0,2\n1,3,2\n",
    "named.csv": "expert_0,expert_1,expert_2\n4,0,2\n1,3,2\n",
    "numbered.csv": "layer,0,1,2\n3,4,0,2\n4,1,3,2\n",
    "long.csv": "Layer,Expert,Tokens\n3,0,4\n3,2,2\n4,0,1\n4,1,3\n4,2,1\n4,2,1\n\n",
    "spaced.csv": "4, 0, 2\n1, 3, 2",
}


@pytest.mark.parametrize("name", TEXTS)
def test_every_form_gives_the_same_counts(tmp_path: Path, name: str) -> None:
    """SGLang's recorder, vLLM's window, lists, objects and three kinds of CSV."""
    path = tmp_path / name
    path.write_text(TEXTS[name], encoding="utf-8")
    found = load_counts(path)

    assert found.tokens == LAYERS
    assert (found.source, found.experts) == (name, 3)


def test_one_layer_may_stand_alone(tmp_path: Path) -> None:
    """A single list is a single layer."""
    path = tmp_path / "one.json"
    path.write_text("[4, 0, 2]", encoding="utf-8")

    assert load_counts(path).tokens == LAYERS[:1]


WRONG = {
    "a.json": ("{", "not JSON"),
    "b.json": ("[]", "no expert got a token"),
    "c.json": ('{"physical_to_logical_map": [[0, 1]]}', "needs logical_count"),
    "d.json": ("[[1, 2], [3]]", "unequal numbers of experts"),
    "e.json": ("[[1, -2]]", "must be a number from 0"),
    "f.json": ("[[1, true]]", "must be a number from 0"),
    "g.json": ("[[1, NaN]]", "must be a number from 0"),
    "h.json": ("[[0, 0]]", "no expert got a token"),
    "i.json": ("[[[1]], [[1], [2]]]", "unequal numbers of layers"),
    "j.json": ('{"logical_count": "many"}', "no list of layers"),
    "k.json": ("3", "no list of layers"),
    "l.json": ('[[1], {"a": 2}]', "no list of layers"),
    "a.csv": ("", "is empty"),
    "b.csv": ("1,2\n3\n", "unequal numbers of experts"),
    "c.csv": ("layer,expert,tokens\n1,2\n", "line 2: is not layer,expert,tokens"),
    "d.csv": ("layer,expert,tokens\n1,99999999999,2\n", "at most"),
    "e.csv": ("1,x\n", "no expert got a token"),
    "f.csv": ("1,2\n1,x\n", "must be a number from 0"),
    "g.pt": ("PK", "logical_count"),
    "m.json": ("[" * 100_000, "not JSON"),
    "n.json": ("{}", "there is none"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_count_is_refused(tmp_path: Path, name: str) -> None:
    """One line says what is wrong and where."""
    text, words = WRONG[name]
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")

    with pytest.raises(InputError, match=words) as refused:
        load_counts(path)
    assert name in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_file_that_is_not_there_or_no_text(tmp_path: Path) -> None:
    """Neither a missing file nor bytes make a traceback."""
    (tmp_path / "bytes.csv").write_bytes(b"\xff\xfe\x00")
    for name in ("absent.json", "bytes.csv", "a\0b.json"):
        with pytest.raises(InputError, match="cannot be read"):
            load_counts(f"{tmp_path}/{name}")
