"""A replayed trace: its own times, any rate, and prompts that share what the trace shared."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from tests.measure.load.driving import driven, taking, text_of

from servewise.measure.load.bodies import Form
from servewise.measure.load.prompts import Prompts
from servewise.measure.load.replay import replay
from servewise.workload.load import load_workload
from servewise.workload.traces.load import load_trace
from servewise.workload.traces.trace import Trace

FORM = Form(model="m", api="completions")
LINES = """{"timestamp": 0, "input_length": 1100, "output_length": 5, "hash_ids": [0, 1, 2]}
{"timestamp": 3000, "input_length": 1500, "output_length": 6, "hash_ids": [0, 1, 3]}
{"timestamp": 9000, "input_length": 600, "output_length": 7, "hash_ids": [4, 5]}
"""


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    """Three requests in Mooncake's layout, two of which share two blocks of 512 tokens."""
    path = tmp_path / "trace.jsonl"
    path.write_text(LINES)
    return load_trace(path)


def test_requests_leave_at_the_recorded_times(trace: Trace) -> None:
    """0, 3 and 9 s after the first, with the recorded lengths."""
    done = driven(replay(trace, Prompts(seed=1), FORM), taking(0.1))
    assert [each.sent_s for each in done] == [0, 3, 9]
    assert [each.ask.prompt_tokens for each in done] == [1100, 1500, 600]
    assert [each.ask.output_tokens for each in done] == [5, 6, 7]
    assert [len(text_of(each).split()) for each in done] == [1100, 1500, 600]


def test_another_rate_scales_all_times(trace: Trace) -> None:
    """Two gaps in 9 s are 2/9 a second; at 2 a second they take 1 s, in the same proportion."""
    done = driven(replay(trace, Prompts(seed=1), FORM, rate_per_s=2.0), taking(0.1))
    assert [each.sent_s for each in done] == pytest.approx([0, 1 / 3, 1])


def test_prompts_share_the_blocks_that_the_trace_shares(trace: Trace) -> None:
    """The first two agree in 1,024 words, the third with neither (a word more may agree by chance)."""
    texts = [text_of(each).split() for each in driven(replay(trace, Prompts(seed=1), FORM), taking(0.1))]
    assert texts[0][:1024] == texts[1][:1024]
    assert texts[0][1024:1030] != texts[1][1024:1030]
    assert texts[0][:4] != texts[2][:4]


def test_a_real_trace_keeps_its_reuse() -> None:
    """Over Mooncake's own first 60 requests, prompts agree block by block exactly where hashes do."""
    trace = load_workload("mooncake-conv", requests=60)
    assert isinstance(trace, Trace)
    assert trace.hash_block_tokens == 512
    requests = list(trace.requests(0))
    prompts = Prompts(seed=2)
    texts = [str(prompts.of(request, 512).content).split() for request in requests]
    whole = [request.prompt_tokens // 512 for request in requests]
    for (one, other), (said, next_said), blocks in zip(
        pairwise(requests), pairwise(texts), pairwise(whole), strict=True
    ):
        for block in range(min(blocks)):
            same = one.block_hashes[block] == other.block_hashes[block]
            here = slice(block * 512, (block + 1) * 512)
            assert (said[here] == next_said[here]) == same


def test_a_repeated_trace_has_prompts_of_its_own(trace: Trace) -> None:
    """The fourth request repeats the first's length, as another user: its text is new."""
    done = driven(replay(trace, Prompts(seed=1), FORM, requests=4), taking(0.1))
    assert len(text_of(done[3])) > 1000
    assert text_of(done[3])[:50] != text_of(done[0])[:50]
