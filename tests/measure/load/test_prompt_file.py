"""A user's prompts: text lines and JSONL, and every bad line refused by its number."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from servewise.errors import InputError
from servewise.measure.load.bodies import Form
from servewise.measure.load.prompt_file import FileAsks, read_prompts
from servewise.workload.request import Request


def written(folder: Path, text: str) -> Path:
    """A file of that text."""
    path = folder / "prompts"
    path.write_text(text, "utf-8")
    return path


def test_text_lines_are_prompts(tmp_path: Path) -> None:
    """One prompt a line, without the line's end; empty lines are passed over."""
    found = read_prompts(written(tmp_path, "one two\r\n\n  \nthrée\n"))
    assert [each.prompt.content for each in found] == ["one two", "thrée"]


def test_json_lines_hold_prompts_messages_and_limits(tmp_path: Path) -> None:
    """A text, token ids or messages, with max_tokens where the line has it."""
    lines = '{"prompt": "a", "max_tokens": 3}\n{"prompt": [1, 2]}\n{"messages": [{"role": "user", "content": "b"}]}\n'
    found = read_prompts(written(tmp_path, lines))
    assert [each.prompt.content for each in found] == ["a", (1, 2), ({"role": "user", "content": "b"},)]
    assert [each.max_tokens for each in found] == [3, None, None]


def test_a_gzipped_file_is_read(tmp_path: Path) -> None:
    """As traces are."""
    path = tmp_path / "prompts.gz"
    path.write_bytes(gzip.compress(b"one\ntwo\n"))
    assert len(read_prompts(path)) == 2


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("{", "no JSON object"),
        ("[1]", "no JSON object"),
        ("[" * 100_000, "no JSON object"),
        ("{}", "prompt or messages"),
        ('{"prompt": "a", "messages": []}', "prompt or messages"),
        ('{"prompt": ""}', "text or token ids"),
        ('{"prompt": [1, -2]}', "text or token ids"),
        ('{"prompt": [true]}', "text or token ids"),
        ('{"prompt": null}', "text or token ids"),
        ('{"messages": []}', "at least one"),
        ('{"messages": [{"content": "a"}]}', "with a role"),
        ('{"messages": ["a"]}', "with a role"),
        ('{"prompt": "a", "max_tokens": 0}', "max_tokens"),
        ('{"prompt": "a", "max_tokens": 1e400}', "max_tokens"),
        ('{"prompt": "a", "max_token": 5}', "max_tokens"),
    ],
)
def test_a_bad_line_is_named_by_its_number(tmp_path: Path, line: str, says: str) -> None:
    """The third line of the file is wrong, and the error says so, what and where."""
    with pytest.raises(InputError, match=rf"prompts:3: .*{says}"):
        read_prompts(written(tmp_path, f'{{"prompt": "fine"}}\n\n{line}\n'))


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xff\xfe\x00", b"\x1f\x8bno gzip"])
def test_a_file_without_prompts_is_one_line(tmp_path: Path, content: bytes) -> None:
    """Empty, no text, or damaged."""
    path = tmp_path / "prompts"
    path.write_bytes(content)
    with pytest.raises(InputError, match="prompts"):
        read_prompts(path)


def test_asks_go_round_the_file(tmp_path: Path) -> None:
    """Request n has prompt n of the file, from the first again; a line's own limit goes before the run's."""
    found = read_prompts(written(tmp_path, '{"prompt": "a", "max_tokens": 3}\n{"prompt": "b"}\n'))
    make = FileAsks(found, Form(model="m", api="completions"))
    bodies = [json.loads(make(Request(serial, 0.0, 99, 7)).body) for serial in range(3)]
    assert [(each["prompt"], each["max_tokens"]) for each in bodies] == [("a", 3), ("b", 7), ("a", 3)]
    assert make(Request(0, 0.0, 99, 7)).prompt_tokens is None
