"""A kept run says the whole command that made it, and the content of every file that it was made from."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.running import invoke, workload

from servewise.measure.mock.plan import MockPlan
from servewise.measure.mock.process import RunningMock, running_mock

ASKED = ("simulate", "llama-2-13b", "--accelerator", "a100-80gb", "--estimator", "ideal", "--rate", "1", "--seeds", "1")
KNOWN = ("--model", "mock", "--hardware", "2 cores", "--precision", "bf16", "--output-tokens", "2", "--repeats", "1")


@pytest.fixture(scope="module")
def server() -> Iterator[RunningMock]:
    """A quick server."""
    with running_mock(MockPlan(first_s=(0.001, 0.002), gap_s=0.001)) as found:
        yield found


def header(folder: Path) -> dict[str, Any]:
    """The run's own file."""
    found: dict[str, Any] = json.loads((folder / "run.json").read_text())
    return found


def source(of: str, path: Path, name: str) -> dict[str, object]:
    """What is to be said of a file, by the standard library."""
    data = path.read_bytes()
    return {"of": of, "name": name, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def test_the_command_in_the_header_makes_the_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All words as they were typed; run again, in another folder, they give the same rows."""
    monkeypatch.chdir(tmp_path)
    workload(tmp_path)
    typed = [*ASKED, "--workload", "w.toml", "--run-dir", "one run", "--processes", "1", "--json"]
    first = invoke(*typed)
    said = shlex.split(header(tmp_path / "one run")["command"])
    again = invoke(*("other" if word == "one run" else word for word in said[1:]))

    assert said == ["servewise", *typed]
    assert json.loads(again.stdout)["result"] == json.loads(first.stdout)["result"]
    assert header(tmp_path / "other")["files"] == header(tmp_path / "one run")["files"]


def test_every_file_that_was_read_is_named_by_its_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The workload file, the trace that it names, and nothing for names that ship; report shows them in each form."""
    monkeypatch.chdir(tmp_path)
    rows = (json.dumps({"arrival_s": at, "prompt_tokens": 90, "output_tokens": 5}) for at in range(9))
    (tmp_path / "t.jsonl").write_text("\n".join(rows))
    (tmp_path / "w.toml").write_text('[trace]\npath = "t.jsonl"\n')
    made = invoke(*ASKED, "--workload", "w.toml", "--run-dir", "d")
    shown = [invoke("report", "d", "-o", "r.md", "--beside"), invoke("report", "d", "--json")]
    files = [source(of, tmp_path / name, name) for of, name in (("workload", "w.toml"), ("trace", "t.jsonl"))]

    assert [each.exit_code for each in (made, *shown)] == [0, 0, 0], made.stderr
    assert header(tmp_path / "d")["sources"] == files
    (said,) = json.loads(shown[1].stdout)["result"]["made_by"]
    assert said == {"command": header(tmp_path / "d")["command"], "sources": files}
    for page in ("r.md", "r.html", "r.json"):
        assert all(str(each["sha256"]) in (tmp_path / page).read_text() for each in files)
        assert "--run-dir d" in (tmp_path / page).read_text()


def test_a_name_that_is_no_text_stands_in_every_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A workload file whose name is not UTF-8: the run, its JSON, and reports of it in each form are written."""
    monkeypatch.chdir(tmp_path)
    Path("w\udcff.toml").write_text(Path(workload(tmp_path)).read_text())
    made = invoke(*ASKED, "--workload", "w\udcff.toml", "--run-dir", "d", "-o", "a.html", "--beside")
    shown = [invoke("report", "d", "-o", "r.md", "--beside"), invoke("report", "d", "--json")]
    (said,) = json.loads(shown[1].stdout)["result"]["made_by"]

    assert [each.exit_code for each in (made, *shown)] == [0, 0, 0], made.stderr
    assert [each["name"] for each in said["sources"]] == ["w\udcff.toml"]
    assert all(Path(f"{name}.json").read_text("utf-8") for name in "ar")


def test_another_file_of_the_same_name_is_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The same command over another content: --keep uses nothing of before and says why; compare names the file."""
    monkeypatch.chdir(tmp_path)
    path = Path(workload(tmp_path))
    runs, said = [], []
    for folder, change in (("a", ""), ("b", ""), ("c", "\n# the same requests\n"), ("d", "")):
        path.write_text(path.read_text() + change)
        path.write_text(path.read_text().replace("median = 200", "median = 210" if folder == "d" else "median = 200"))
        caplog.clear()
        runs.append(invoke(*ASKED, "--workload", "w.toml", "--keep", "kept", "--run-dir", folder))
        said.append(caplog.text)
    compared = [json.loads(invoke("compare", "a", each, "--json").stdout) for each in "bd"]
    differing = [[each["condition"] for each in document["result"]["differences"]] for document in compared]

    assert [each.exit_code for each in runs] == [0] * 4
    assert "another" not in "".join(said[:3])
    assert "were done before" in said[2]  # the file differs, what it describes does not
    assert "kept keeps results of another workload w.toml" in said[3]
    assert differing[0] == []
    assert "workload" in differing[1]


def test_a_measurement_names_its_prompts_and_hides_its_keys(server: RunningMock, tmp_path: Path) -> None:
    """The files of the load by content; keys, headers and what stands in the address's query are in no file."""
    prompts = tmp_path / "p.txt"
    prompts.write_text("one prompt\nanother prompt\n")
    secret = ("--api-key", "sk-0123456789", "--header=X-Tenant: acme-987654")
    load = ("--prompts", str(prompts), "--concurrency", "1,2", "--requests", "4", "--warmup", "1")
    found = invoke("bench", f"{server.url}?token=abcdefgh", *KNOWN, *load, *secret, "--run-dir", str(tmp_path / "d"))
    report = invoke("report", str(tmp_path / "d"), "--output", str(tmp_path / "r.html"))
    said = header(tmp_path / "d" / "concurrency-2")

    assert found.exit_code == report.exit_code == 0, found.stderr
    assert said["sources"] == [source("prompts", prompts, str(prompts))]
    words = shlex.split(said["command"])
    assert words[:3] == ["servewise", "bench", f"{server.url}?token=(hidden)"]
    assert words[words.index("--api-key") + 1] == "(hidden)"
    assert "--header=(hidden)" in words
    for path in (each for each in tmp_path.rglob("*") if each.is_file()):
        assert not any(each.encode() in path.read_bytes() for each in ("0123456789", "987654", "abcdefgh")), path
