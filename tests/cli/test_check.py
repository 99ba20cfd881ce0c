"""``servewise check`` and ``servewise plan --emit`` as commands."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from click.testing import CliRunner
from tests.cli.running import WORKLOAD, invoke

from servewise.answer import Answer
from servewise.cli.emitting import files_of
from servewise.cli.main import servewise
from servewise.errors import InputError

BAD = "vllm serve org/m --max-num-seqs 512 --max-num-batched-tokens 256 --host 0.0.0.0\n"


def test_fail_on_is_a_gate(tmp_path: Path) -> None:
    """Exit 1 where there is a finding of that severity or worse, else 0."""
    bad, note = tmp_path / "bad.sh", tmp_path / "note.sh"
    bad.write_text(BAD)
    note.write_text("vllm serve org/m --host 0.0.0.0\n")

    assert invoke("check", str(bad)).exit_code == 0
    assert invoke("check", str(bad), "--fail-on", "error").exit_code == 1
    assert invoke("check", str(note), "--fail-on", "warning").exit_code == 0
    assert invoke("check", str(note), "--fail-on", "note").exit_code == 1


def test_json_is_the_common_form(tmp_path: Path) -> None:
    """Schema, conditions, result and caveats; each finding with code, severity, where, why, cure and source."""
    path = tmp_path / "serve.sh"
    path.write_text(BAD)
    document = json.loads(invoke("check", str(path), "--json").stdout)

    assert document["schema"] == "servewise.check/1"
    assert {"conditions", "result", "caveats"} <= set(document)
    first = document["result"]["findings"][0]
    assert {"code", "severity", "where", "why", "cure", "source"} <= set(first)
    assert first["code"] == "batched-below-sequences"
    assert first["where"] == {"line": 1, "column": 37, "option": "--max-num-batched-tokens"}
    assert document["result"]["counts"] == {"error": 1, "warning": 0, "note": 1}


def test_standard_input_and_wrong_files(tmp_path: Path) -> None:
    """``-`` reads stdin; a missing, an empty and an unknown thing are one line and exit 2."""
    given = CliRunner().invoke(servewise, ["check", "-", "--json"], input=BAD)
    assert json.loads(given.stdout)["result"]["counts"]["error"] == 1

    (tmp_path / "empty").write_text(" \n")
    assert invoke("check", str(tmp_path / "missing")).exit_code == 2
    assert invoke("check", str(tmp_path / "empty")).exit_code == 2
    assert invoke("check", str(tmp_path / "empty"), "--engine", "vlm").exit_code == 2


def test_any_bytes_are_read(tmp_path: Path) -> None:
    """A picture is no configuration, and no traceback."""
    path = tmp_path / "picture.png"
    path.write_bytes(bytes(range(256)) * 40)
    assert invoke("check", str(path)).exit_code == 0


def test_a_plan_is_emitted_as_files_that_check_accepts(tmp_path: Path) -> None:
    """--emit-dir writes a script and a manifest; check finds nothing in either."""
    (tmp_path / "w.toml").write_text(WORKLOAD)
    plan = ("plan", "llama-3.1-8b", "--accelerators", "h100-sxm", "--counts", "1", "--slo", "ttft_p95<=2s")
    more = ("--workload", str(tmp_path / "w.toml"), "--emit", "vllm,kubernetes")
    folder = tmp_path / "out"
    result = invoke(*plan, *more, "--emit-dir", str(folder))

    assert result.exit_code == 0, result.output
    assert {each.name for each in folder.iterdir()} == {"vllm.sh", "vllm-kubernetes.yaml"}
    for each in folder.iterdir():
        assert invoke("check", str(each), "--fail-on", "note").exit_code == 0
    printed = invoke(*plan, *more).stdout
    assert "vllm serve" in printed
    assert "kind: Deployment" in printed
    assert invoke(*plan, *more[:2], "--emit", "vlm").exit_code == 2


def test_a_path_that_is_no_text_is_not_emitted() -> None:
    """Bytes that are not UTF-8 in the model's path: one line says so."""
    answer = SimpleNamespace(
        result={"launch": {"vllm": {"argv": ["vllm", "serve", "a\udcff"], "env": {}, "files": {}, "notes": []}}}
    )
    with pytest.raises(InputError, match="not UTF-8"):
        files_of(cast("Answer", answer), ("vllm",))
