"""--executor and --keep on the command line."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from tests.cli.running import invoke, workload

ASKED = ("simulate", "llama-2-13b", "--accelerator", "a100-80gb", "--rate", "1", "--seeds", "1")


@pytest.mark.parametrize(
    ("words", "code", "line"),
    [
        (("--executor", "rya"), 2, "servewise: executor: unknown executor 'rya'; did you mean ray?"),
        (("--executor", "ray://head"), 2, "servewise: executor: 'ray://head' is no address of a Ray cluster; "),
        (("--executor", "127.0.0.1:1"), 3, "servewise: no Ray cluster at 127.0.0.1:1: Connection refused"),
        (("--keep", "w.toml"), 2, "servewise: keep: cannot be written (File exists); another folder"),
    ],
)
def test_what_cannot_be_is_one_line(
    words: tuple[str, ...], code: int, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unknown executor and a file for a folder are wrong input, a cluster that does not answer a failed run."""
    if code == 3:
        pytest.importorskip("ray")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    workload(tmp_path)
    found = invoke(*ASKED, "--workload", "w.toml", *words)

    assert (found.exit_code, found.stdout) == (code, "")
    assert found.stderr.startswith(line)
    assert found.stderr.count("\n") == 1


def test_who_does_it_is_not_part_of_the_question(tmp_path: Path) -> None:
    """A report's command line names neither the executor nor the folder, and the kept answer is the same document."""
    asked, page = (*ASKED, "--workload", workload(tmp_path)), tmp_path / "x.md"
    plain = invoke(*asked, "--json")
    kept = [invoke(*asked, "--json", "--executor", "local", "--keep", str(tmp_path / "kept")) for _ in range(2)]
    invoke(*asked, "--executor=local", f"--keep={tmp_path / 'kept'}", "-o", str(page))

    assert [each.stdout for each in kept] == [plain.stdout] * 2
    assert f"    {shlex.join(['servewise', *asked])}" in page.read_text().splitlines()
