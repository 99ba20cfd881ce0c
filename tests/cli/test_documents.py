"""--json and --output: one document, whole or not at all."""

from __future__ import annotations

import errno
import json
import os
import stat
from pathlib import Path

import pytest
from tests.cli.running import invoke, process, workload

import servewise
from servewise.cli.showing import show, write_whole
from servewise.errors import InputError
from servewise.report.document import load_answer
from servewise.report.html import write_html

MODEL = ["llama-2-13b", "--accelerator", "a100-80gb"]
ASKED = {
    "size": MODEL,
    "steptime": MODEL,
    "simulate": [*MODEL, "--workload", "W", "--rate", "1,2", "--policy", "static,continuous", "--seeds", "1"],
    "speculate": ["--acceptance", "0.8", "--draft-cost", "0.128"],
    "prefix": ["--prompt-tokens", "1000", "--calls", "1M", "--price", "3"],
    "plan": ["llama-2-13b", "--accelerators", "a100-80gb", "--workload", "W", "--slo", "e2e_p95<=60s", "--counts", "1"],
}
RESULT = {
    "size": {"weight_bytes", "kv_bytes_per_token", "kv_budget_bytes", "kv_tokens", "max_sequences", "fits"},
    "steptime": {"rows", "ridge_batch", "ridge_batch_without_kv"},
    "simulate": {"rows", "knees", "slo"},
    "speculate": {"best_k", "speedup", "rows", "by_acceptance"},
    "prefix": {"requests", "prompt_tokens", "reusable_tokens", "hit_rate", "breaks", "cost_usd", "cost_with_cache_usd"},
    "plan": {"ranking", "rejected", "recommendation", "sensitivity"},
}


def asked(command: str, folder: Path) -> list[str]:
    """The command's arguments with its workload in ``folder``."""
    return [command, *(workload(folder) if each == "W" else each for each in ASKED[command])]


def kept(folder: Path) -> str:
    """The path of a document of ``size``."""
    invoke("size", *MODEL, "-o", str(folder / "kept.json"))
    return str(folder / "kept.json")


@pytest.mark.parametrize("command", ASKED)
def test_json_is_one_document_with_contracts_keys(command: str, tmp_path: Path) -> None:
    """stdout is exactly one JSON document: schema, conditions, result, caveats; caveats each with their cure."""
    found = invoke(*asked(command, tmp_path), "--json")
    document = json.loads(found.stdout)

    assert found.exit_code == 0
    assert found.stderr == ""
    assert set(document) == {"schema", "conditions", "result", "caveats"}
    assert document["schema"] == f"servewise.{command}/1"
    assert set(document["result"]) >= RESULT[command]
    assert all(document["conditions"].get(key) for key in ("hardware", "load", "lengths", "precision", "version"))
    assert all(set(each) == {"code", "message", "cure"} for each in document["caveats"])


@pytest.mark.parametrize("command", ASKED)
def test_tables_for_people_have_their_conditions(command: str, tmp_path: Path) -> None:
    """Without --json there are tables, under a line of conditions, and no escape sequences in a pipe."""
    found = invoke(*asked(command, tmp_path))

    assert found.exit_code == 0
    assert len(found.stdout.splitlines()) > 4
    assert "\x1b" not in found.stdout


def test_json_has_no_nan(tmp_path: Path) -> None:
    """A policy that never makes a second token has no TPOT: null, since JSON has no NaN."""
    one = tmp_path / "one.toml"
    one.write_text(Path(workload(tmp_path)).read_text().replace("tokens = 40", "tokens = 1"))
    asked = ["simulate", *MODEL, "--workload", str(one), "--json", "--seeds", "1"]
    row = json.loads(invoke(*asked).stdout, parse_constant=pytest.fail)["result"]["rows"][0]

    assert row["tpot_s"]["p95"] is None
    assert row["ttft_s"]["p95"] > 0


def test_output_is_the_same_document(tmp_path: Path) -> None:
    """FILE holds what --json prints, beside whatever stdout shows."""
    target = tmp_path / "answer.json"
    printed = invoke("size", *MODEL, "--json", "--output", str(target))
    shown = invoke("size", *MODEL, "-o", str(tmp_path / "other.json"))

    assert json.loads(target.read_text()) == json.loads(printed.stdout)
    assert (tmp_path / "other.json").read_text() == target.read_text()
    assert not shown.stdout.startswith("{")


def test_output_html_is_a_report(tmp_path: Path) -> None:
    """A name that ends in .html gets a self-contained page."""
    target = tmp_path / "answer.html"
    invoke("size", *MODEL, "-o", str(target))
    page = target.read_text()

    assert page.lstrip().lower().startswith("<!doctype html")
    assert "llama-2-13b" in page


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Interrupted before the move, the file is as it was and nothing lies beside it."""
    target = tmp_path / "answer.json"
    target.write_text("old")

    def broken(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("os.replace", broken)
    with pytest.raises(KeyboardInterrupt):
        write_whole(target, "new")

    assert target.read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["answer.json"]


@pytest.mark.parametrize("through_a_link", [False, True])
def test_a_device_or_pipe_is_not_replaced(tmp_path: Path, *, through_a_link: bool) -> None:
    """``--output /dev/null`` as root must not turn the device into a file: refused; here with a pipe in its place."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    target = tmp_path / "link" if through_a_link else pipe
    if through_a_link:
        target.symlink_to(pipe)
    found = invoke("size", *MODEL, "-o", str(target))

    assert (found.exit_code, found.stdout) == (2, "")
    assert "device or pipe" in found.stderr
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    with pytest.raises(InputError, match="device or pipe"):
        write_whole(target, "text")
    with pytest.raises(InputError, match="device or pipe"):
        write_html(target, load_answer(kept(tmp_path)), title="t")
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    """The file that a link leads to is written, the link is not replaced."""
    (tmp_path / "link.json").symlink_to(tmp_path / "real.json")
    write_whole(tmp_path / "link.json", "text")

    assert (tmp_path / "link.json").is_symlink()
    assert (tmp_path / "real.json").read_text() == "text"


def test_a_full_disk_is_one_line_that_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No space left: exit code 2, the file named, nothing beside it."""

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("os.replace", full)
    target = tmp_path / "answer.json"
    found = invoke("size", *MODEL, "-o", str(target))

    assert found.exit_code == 2
    assert found.stderr == f"servewise: {target}: cannot be written (No space left on device); another place\n"
    assert list(tmp_path.iterdir()) == []


def test_a_closed_stdout_is_no_defect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``>&-``: Python has no stdout then; the file is written and there is no traceback."""
    monkeypatch.setattr("sys.stdout", None)
    size = servewise.size("llama-2-13b", "a100-80gb")
    show(size, as_json=True, targets=[tmp_path / "answer.json"])

    assert json.loads((tmp_path / "answer.json").read_text())["schema"] == "servewise.size/1"


def test_report_draws_documents_and_runs(tmp_path: Path) -> None:
    """Documents of commands and a run directory become one page with all of them."""
    small = workload(tmp_path)
    invoke("size", *MODEL, "-o", str(tmp_path / "size.json"))
    run = str(tmp_path / "run")
    made = invoke("simulate", *MODEL, "--workload", small, "--rate", "1", "--seeds", "1", "--run-dir", run)
    assert made.exit_code == 0
    target = tmp_path / "report.html"
    found = invoke("report", str(tmp_path / "size.json"), run, "--output", str(target))

    assert found.exit_code == 0
    assert "Memory of one accelerator" in target.read_text()
    assert "TTFT" in target.read_text()
    assert str(target) in found.stderr


def test_report_as_markdown(tmp_path: Path) -> None:
    """A name that ends in .md gets Markdown."""
    invoke("size", *MODEL, "-o", str(tmp_path / "size.json"))
    found = invoke("report", str(tmp_path / "size.json"), "-o", str(tmp_path / "r.md"))

    assert found.exit_code == 0
    assert "|" in (tmp_path / "r.md").read_text()


def test_two_processes_print_what_one_prints(tmp_path: Path) -> None:
    """A real process with two workers (6,000 requests six times over): the same document, progress off stdout."""
    asked_for = [*asked("simulate", tmp_path), "--requests", "6000"]
    one, two = (process(*asked_for, "--json", "--processes", count).stdout for count in ("1", "2"))

    assert one == two
    json.loads(two)


def test_a_report_is_html_or_markdown(tmp_path: Path) -> None:
    """HTML under the name of a PDF would open nowhere: refused before anything is read."""
    found = invoke("report", str(tmp_path / "none.json"), "-o", str(tmp_path / "r.pdf"))

    assert found.exit_code == 2
    assert "HTML, Markdown or JSON" in found.stderr
    assert not (tmp_path / "r.pdf").exists()


@pytest.mark.parametrize(
    ("source", "more"),
    [("runs/a", ("runs/a/run.json",)), ("runs", ("runs/a/run.json",)), ("runs/a", ("runs/a/run.html", "--beside"))],
)
def test_a_report_never_replaces_a_run(tmp_path: Path, source: str, more: tuple[str, ...]) -> None:
    """The header of a run that is drawn stays, under whatever name the report would have taken its place."""
    run = tmp_path / "runs" / "a"
    invoke("simulate", *MODEL, "--workload", workload(tmp_path), "--rate", "1", "--seeds", "1", "--run-dir", str(run))
    header = (run / "run.json").read_bytes()
    found = invoke("report", str(tmp_path / source), "-o", str(tmp_path / more[0]), *more[1:])

    assert (found.exit_code, "is one of the sources" in found.stderr) == (2, True)
    assert (run / "run.json").read_bytes() == header
    assert invoke("report", str(run), "-o", str(run / "report.html")).exit_code == 0


@pytest.mark.parametrize("line", ["check {0}", "size {0} --accelerator h100-sxm"])
def test_an_answer_never_replaces_what_was_asked_about(tmp_path: Path, line: str) -> None:
    """-o with the name of the file that is read leaves that file as it was."""
    config = tmp_path / "mine.json"
    config.write_text('{"max_num_seqs": 8, "max_model_len": 4096}')
    found = invoke(*line.format(config).split(), "-o", str(config))

    assert (found.exit_code, "is one of the sources" in found.stderr) == (2, True)
    assert json.loads(config.read_text())["max_num_seqs"] == 8
