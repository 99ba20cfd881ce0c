"""Whatever the text, ``check`` reads it or says nothing: never an exception, never a place outside of it."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from servewise.check.every import check_text
from servewise.check.finding import SEVERITIES
from servewise.hardware.catalogue import load_accelerator
from servewise.modelspec.load import load_model

DATA = Path(__file__).parents[1] / "field" / "data" / "engine_examples.jsonl"
EXAMPLES = [json.loads(line)["text"] for line in DATA.read_text(encoding="utf-8").splitlines()]
MODEL, CHIP = load_model("llama-3.1-8b"), load_accelerator("a100-80gb")
PIECES = (
    "vllm serve m ",
    "python -m sglang.launch_server ",
    "trtllm-serve m ",
    "llama-server ",
    "--max-num-seqs ",
    "-tp ",
    "=",
    "'",
    '"',
    "\\\n",
    "\n",
    "{",
    "}",
    "[",
    "- ",
    ": ",
    "apiVersion: v1\nkind: Pod\n",
    "spec:\n  containers:\n  - args: ",
    "--speculative-config ",
    '{"num_speculative_tokens": ',
    "-1",
    "1e999",
    "0",
    "99999999999999999999",
    "nan",
    "TTFT ",
    "45 ms ",
    "2,500 tokens/s ",
    "2.8x faster",
    "<<EOF\n",
    "EOF\n",
    "```yaml\n",
    "```\n",
    '{"messages": [{"role": "user", "content": "',
    '"}]}',
    "*a",
    "&a",
    "\x00",
    "\ud7ff",
    "é",
    "--gpu-memory-utilization ",
    "--max-model-len ",
    "int4 no quality loss ",
)
TEXTS = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=6)), max_size=30).map("".join)
KEYS = (
    "schema",
    "conditions",
    "result",
    "rows",
    "messages",
    "role",
    "content",
    "prompt",
    "caveats",
    "completed",
    "duration",
    "request_throughput",
    "total_output_tokens",
    "ttft_s",
    "n",
    "p99",
    "errors",
    "tools",
    "body",
)
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(
            st.sampled_from(KEYS),
            inner,
            max_size=5,
        ),
    ),
    max_leaves=12,
)


def sound(text: str) -> None:
    """The findings of ``text`` can be written as JSON, and stand in it."""
    checked = check_text(text, model_of=lambda _: MODEL, accelerator=CHIP)
    lines = text.count("\n") + 1
    for each in checked.findings:
        assert each.severity in SEVERITIES
        assert 0 <= each.place.line <= lines
        json.dumps(each.to_json())


@given(TEXTS)
@settings(max_examples=250, deadline=None)
def test_any_text(text: str) -> None:
    """Pieces of commands, YAML, JSON and prose in any order."""
    sound(text)


@given(st.sampled_from(EXAMPLES), st.integers(0, 2000), st.integers(0, 2000), st.sampled_from(PIECES))
@settings(max_examples=250, deadline=None)
def test_a_real_example_cut_and_spliced(text: str, begin: int, end: int, piece: str) -> None:
    """An engine's example with a stretch replaced."""
    first, last = sorted((begin % (len(text) + 1), end % (len(text) + 1)))
    sound(text[:first] + piece + text[last:])


@given(st.lists(JSON, min_size=1, max_size=4))
@settings(max_examples=250, deadline=None)
def test_any_json(values: list[object]) -> None:
    """Documents and logs whose values are of any kind."""
    sound("\n".join(json.dumps(each) for each in values))
