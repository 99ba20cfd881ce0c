"""Trace files: each layout from rows as recorded, order, refusals with file and line, what is left out."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from servewise.errors import InputError
from servewise.workload.request import Request
from servewise.workload.traces.layouts import wall_clock
from servewise.workload.traces.load import load_trace

# The first rows of each source, as published.
AZURE = """TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:17:03.9799600,4808,10
2023-11-16 18:17:04.0319600,3180,8
2023-11-16 18:17:04.0781490,110,27
"""
MOONCAKE = """{"timestamp": 0, "input_length": 1025, "output_length": 500, "hash_ids": [0, 1, 2]}
{"timestamp": 3000, "input_length": 7, "output_length": 490, "hash_ids": [0]}
"""
BURSTGPT = """Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type
5,ChatGPT,472,18,490,Conversation log
45,ChatGPT,1087,0,1087,Conversation log
118,GPT-4,417,276,693,API log
"""
VLLM = (
    '{"input_toks": 40, "output_toks": 531, "arrival_time_ns": 46926808, "hash_ids_block16": [7, 8, 9]}\n'
    '{"input_toks": 17, "output_toks": 2, "arrival_time_ns": 1046926808, "hash_ids_block16": [7, 12]}\n'
)
VIDUR = "arrived_at,num_prefill_tokens,num_decode_tokens\n0.0,374,44\n4.314579,396,109\n"
HEAD = "arrival_s,prompt_tokens,output_tokens\n"
GENERIC = (
    '{"arrival_s": 10.5, "prompt_tokens": 40, "output_tokens": 3, "block_hashes": ["a", "b"]}\n'
    '{"arrival_s": 11.0, "prompt_tokens": 33, "output_tokens": 4}\n'
    '{"arrival_s": 11.0, "prompt_tokens": 20, "output_tokens": 1, "block_hashes": ["a"]}\n'
)


def write(folder: Path, text: str | bytes, name: str = "trace") -> Path:
    """``text`` as a file in ``folder``."""
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def rows(path: Path) -> list[Request]:
    """The requests of the trace at ``path``."""
    return list(load_trace(path).requests(0))


def test_azure_times_keep_seven_digits(tmp_path: Path) -> None:
    """0.1 µs of the wall clock survive, counted from the first request."""
    made = rows(write(tmp_path, AZURE))
    assert [r[2:4] for r in made] == [(4808, 10), (3180, 8), (110, 27)]
    assert [r.arrival_s for r in made] == pytest.approx([0.0, 0.0520000, 0.0981890], abs=5e-8)


def test_wall_clock_knows_zones_and_refuses_other_text() -> None:
    """The same moment in two zones is equal; a number or a bare date is no wall clock."""
    assert wall_clock("2024-05-10 02:00:00.5+02:00") == wall_clock("2024-05-10T00:00:00.5Z")
    for wrong in ("12.5", "2024-05-10", "2024-13-10 00:00:00", "", "2024-05-10 00:00:00.5 or so"):
        with pytest.raises(ValueError):
            wall_clock(wrong)


def test_mooncake_is_milliseconds_and_blocks_of_512(tmp_path: Path) -> None:
    """Times are ms; a shared first block has one name in both requests."""
    trace = load_trace(write(tmp_path, MOONCAKE))
    first, second = trace.requests(0)
    assert trace.hash_block_tokens == 512
    assert second.arrival_s == 3.0
    assert first.block_hashes[0] == second.block_hashes[0]
    assert len(set(first.block_hashes)) == 3


def test_runs_of_blocks_are_the_same_as_their_ids(tmp_path: Path) -> None:
    """The compact form [first, last] gives the requests of the long form."""
    text = (
        '{"arrival_ms":0,"prompt_tokens":1025,"output_tokens":500,"block_runs_512":[[0,2]]}\n'
        '{"arrival_ms":3000,"prompt_tokens":7,"output_tokens":490,"block_runs_512":[[0,0]]}\n'
    )
    assert rows(write(tmp_path, text, "runs")) == rows(write(tmp_path, MOONCAKE, "ids"))


def test_burstgpt_failures_are_counted_never_dropped_in_silence(tmp_path: Path) -> None:
    """A row with 0 response tokens is a failed request: left out, and said so with its count."""
    trace = load_trace(write(tmp_path, BURSTGPT))
    assert [(r.arrival_s, r.prompt_tokens, r.output_tokens) for r in trace.requests(0)] == [
        (0, 472, 18),
        (113, 417, 276),
    ]
    (caveat,) = trace.caveats
    assert caveat.code == "trace-rows-left-out"
    assert "1 of 3 rows" in caveat.message


def test_vllm_runs_are_nanoseconds_and_blocks_of_16(tmp_path: Path) -> None:
    """Times are ns from the first; blocks of 16 tokens keep which are shared."""
    trace = load_trace(write(tmp_path, VLLM))
    first, second = trace.requests(0)
    assert trace.hash_block_tokens == 16
    assert second.arrival_s == pytest.approx(1.0)
    assert set(first.block_hashes) & set(second.block_hashes) == {first.block_hashes[0]}


def test_splitwise_columns_of_vidur_are_read(tmp_path: Path) -> None:
    """Vidur's processed traces (arrived_at, num_prefill_tokens, num_decode_tokens) are requests."""
    assert rows(write(tmp_path, VIDUR)) == [Request(0, 0.0, 374, 44), Request(1, 4.314579, 396, 109)]


def test_generic_jsonl_with_hashes_of_text(tmp_path: Path) -> None:
    """Equal texts are equal blocks; rows without are not shared; times count from the first."""
    first, second, third = rows(write(tmp_path, GENERIC))
    assert (first.arrival_s, second.arrival_s) == (0.0, 0.5)
    assert second.block_hashes == ()
    assert third.block_hashes == first.block_hashes[:1]


def test_prompts_of_token_ids_are_cut_into_chained_blocks(tmp_path: Path) -> None:
    """Equal prefixes share blocks of 16 ids up to the first difference, and none after it though later ids agree."""
    a, b = list(range(48)), [*range(20), 999, *range(21, 48)]
    text = "".join(f'{{"arrival_s": 0, "prompt_tokens": 48, "output_tokens": 1, "prompt": {ids}}}\n' for ids in (a, b))
    first, second = rows(write(tmp_path, text))
    assert [x == y for x, y in zip(first.block_hashes, second.block_hashes, strict=True)] == [True, False, False]


def test_prompts_of_text_are_blocks_with_a_caveat(tmp_path: Path) -> None:
    """Text is cut at 4 characters a token, which the trace says is inexact."""
    prompts = ["x" * 64 + "y" * 64, "x" * 64 + "z" * 64]
    text = "".join(f'{{"arrival_s": 0, "prompt_tokens": 40, "output_tokens": 1, "prompt": "{p}"}}\n' for p in prompts)
    trace = load_trace(write(tmp_path, text))
    first, second = trace.requests(0)
    assert [x == y for x, y in zip(first.block_hashes, second.block_hashes, strict=True)] == [True, False]
    assert [each.code for each in trace.caveats] == ["trace-text-blocks"]


def test_gzip_byte_order_mark_and_blank_lines_do_not_matter(tmp_path: Path) -> None:
    """A gzipped file, a BOM, Windows line ends and blank lines give the same requests."""
    plain = rows(write(tmp_path, AZURE))
    marked = "\ufeff" + AZURE.replace("\n", "\r\n") + "\r\n\r\n"
    assert rows(write(tmp_path, gzip.compress(AZURE.encode()), "t.csv.gz")) == plain
    assert rows(write(tmp_path, marked, "t.csv")) == plain
    assert rows(write(tmp_path, "\n\n" + VLLM.replace("\n", "\n\n"), "v")) == rows(write(tmp_path, VLLM, "w"))


def test_out_of_order_is_refused_with_its_line_and_sorted_when_asked(tmp_path: Path) -> None:
    """A row earlier than one before it names file:line and the cure; sorted, ties keep the file's order."""
    text = "arrival_s,prompt_tokens,output_tokens\n5,1,1\n3,2,2\n4,3,3\n3,4,4\n"
    path = write(tmp_path, text)
    with pytest.raises(InputError, match=r"trace:3: the trace is out of order.*sort"):
        load_trace(path)
    trace = load_trace(path, sort=True)
    assert [(r.arrival_s, r.prompt_tokens) for r in trace.requests(0)] == [(0, 2), (0, 4), (1, 3), (2, 1)]
    assert [each.code for each in trace.caveats] == ["trace-sorted"]


def test_sorting_keeps_ties_in_the_files_order(tmp_path: Path) -> None:
    """Of 400 rows in four moments, those of one moment stay in the order in which they stand."""
    lines = [f"{9 - row % 4},{row + 1},1\n" for row in range(400)]
    trace = load_trace(write(tmp_path, HEAD + "".join(lines)), sort=True)
    prompts = [r.prompt_tokens for r in trace.requests(0)]
    assert prompts == [row + 1 for moment in (3, 2, 1, 0) for row in range(moment, 400, 4)]


def test_sorting_moves_blocks_with_their_requests(tmp_path: Path) -> None:
    """After sorting, each request still has its own blocks."""
    lines = MOONCAKE.splitlines(keepends=True)
    backwards = load_trace(write(tmp_path, lines[1] + lines[0]), sort=True)
    assert [r[2:] for r in backwards.requests(0)] == [r[2:] for r in rows(write(tmp_path, MOONCAKE, "m"))]


RUNS = '{{"arrival_ms": 0, "prompt_tokens": 1000, "output_tokens": 5, "block_runs_512": {}}}\n'
OBJECT = '{{"arrival_s": {}, "prompt_tokens": {}, "output_tokens": {}}}\n'


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        (HEAD + "0,5,0\n", 2, "output_tokens"),
        (HEAD + "0,0,5\n", 2, "prompt_tokens"),
        (HEAD + "0,5,5\n1,-3,5\n", 3, "prompt_tokens"),
        (HEAD + "0,5,5\n1,1e30,5\n", 3, "prompt_tokens"),
        (HEAD + "0,nan,5\n", 2, "prompt_tokens"),
        (HEAD + "0,5.5,5\n", 2, "prompt_tokens"),
        (HEAD + "nan,5,5\n", 2, "arrival_s"),
        (HEAD + "inf,5,5\n", 2, "arrival_s"),
        (HEAD + "1e300,5,5\n", 2, "time"),
        (HEAD + ",5,5\n", 2, "arrival_s"),
        (HEAD + "0,5\n", 2, "2 of 3 columns"),
        (HEAD + "0,5,word\n", 2, "output_tokens"),
        (AZURE + "yesterday,1,1\n", 5, "TIMESTAMP"),
        (OBJECT.format(0, 5, "NaN"), 1, "output_tokens"),
        (OBJECT.format(0, 5, "null"), 1, "output_tokens"),
        (OBJECT.format(0, 5, "true"), 1, "output_tokens"),
        (OBJECT.format(0, 5, "[5]"), 1, "output_tokens"),
        (OBJECT.format(0, 5, "9" * 5000), 1, "JSON"),
        (OBJECT.format(0, 5, 5) + "{broken\n", 2, "JSON"),
        (OBJECT.format(0, 5, 5) + "[1]\n", 2, "JSON"),
        (OBJECT.format(0, 5, 5) + '{"arrival_s": 1}\n', 2, "lacks prompt_tokens, output_tokens"),
        (OBJECT.format(0, 5, 5) + "[" * 100_000 + "\n", 2, "JSON"),
        (MOONCAKE.replace("[0, 1, 2]", "[0, 1, 2, 3]"), 1, "4 blocks of 512"),
        (MOONCAKE.replace("[0, 1, 2]", "7"), 1, "hash_ids"),
        (RUNS.format("[[0, 99999999999]]"), 1, "no run of blocks"),
        (RUNS.format("[[2, 1]]"), 1, "no run of blocks"),
        (RUNS.format("[[0]]"), 1, "pairs"),
        (RUNS.format("[[0, 1], [3, 3]]"), 1, "no run of blocks"),
        (RUNS.format("7"), 1, "pairs"),
        (MOONCAKE.replace("[0, 1, 2]", "[0.5]"), 1, "hash_ids"),
        (MOONCAKE.replace("[0, 1, 2]", "[99999999999999999999]"), 1, "hash_ids"),
    ],
)
def test_wrong_values_are_one_line_with_file_and_line(tmp_path: Path, text: str, line: int, what: str) -> None:
    """Zero, negative, NaN, absurd, missing and misshapen values each name the file, the line and the field."""
    path = write(tmp_path, text)
    with pytest.raises(InputError) as caught:
        load_trace(path)
    message = str(caught.value)
    assert message.startswith(f"{path}:{line}: ")
    assert what in message
    assert "\n" not in message
    assert len(message) < 400


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "empty"),
        (b"\n\n", "empty"),
        (HEAD.encode(), "no request"),
        (b"a,b,c\n1,2,3\n", "no trace that is known"),
        (b'{"a": 1}\n', "no trace that is known"),
        (b"\xff\xfe\x00\x01", "UTF-8"),
        (b"\x1f\x8bnot gzip at all", "gzip"),
        (gzip.compress(AZURE.encode())[:-20], "gzip"),
        ((HEAD + "0,1,1\n5e9,1,1\n").encode(), "30 years"),
        (b"x" * 40_000_000, "32 million"),
    ],
)
def test_files_that_are_no_traces_are_one_clear_line(tmp_path: Path, content: bytes, what: str) -> None:
    """Empty, foreign, binary and truncated files, and lines without end, are an InputError that names the file."""
    path = write(tmp_path, content)
    with pytest.raises(InputError, match=what) as caught:
        load_trace(path)
    assert str(caught.value).startswith(str(path))


def test_missing_file_and_folder_are_input_errors(tmp_path: Path) -> None:
    """A path that is not there, or is a folder, is one line."""
    for path in (tmp_path / "none.csv", tmp_path):
        with pytest.raises(InputError):
            load_trace(path)


def test_limit_reads_no_further(tmp_path: Path) -> None:
    """With a limit of 2 rows, what is wrong in the third is never read."""
    path = write(tmp_path, AZURE.replace("110", "wrong"))
    assert len(load_trace(path, limit=2)) == 2
