"""``servewise completion`` and what a shell gets from it."""

from __future__ import annotations

import subprocess
import sys
from shutil import which

import pytest
from click.shell_completion import BashComplete
from tests.cli.running import invoke

from servewise.cli.main import servewise


def offered(line: str, incomplete: str) -> list[str]:
    """What is offered for ``incomplete`` after ``line``."""
    completer = BashComplete(servewise, {}, "servewise", "_SERVEWISE_COMPLETE")
    return [each.value for each in completer.get_completions(line.split(), incomplete)]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_its_script(shell: str) -> None:
    """The script calls servewise back by the variable that click looks at."""
    found = invoke("completion", shell)

    assert found.exit_code == 0
    assert "_SERVEWISE_COMPLETE" in found.stdout


@pytest.mark.skipif(which("bash") is None, reason="no bash on this machine")
def test_bash_takes_the_script() -> None:
    """bash reads the script without complaint."""
    script = invoke("completion", "bash").stdout

    assert subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True, check=True).stderr == ""


def test_commands_are_offered_without_importing_them() -> None:
    """All commands that begin so; their modules are not loaded for that."""
    code = (
        "import sys; from servewise.cli.main import servewise; from click.shell_completion import BashComplete;"
        "found = BashComplete(servewise, {}, 'servewise', 'X').get_completions([], 'si');"
        "print([each.value for each in found], 'servewise.cli.size' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert said.strip() == "['size', 'simulate'] False"


@pytest.mark.parametrize(
    ("line", "incomplete", "expected"),
    [
        ("size", "llama-2-1", "llama-2-13b"),
        ("steptime llama-2-13b --accelerator", "a100-80", "a100-80gb"),
        ("simulate llama-2-13b --workload", "azure-c", "azure-conv"),
        ("simulate llama-2-13b --policy", "static,cont", "static,continuous"),
        ("plan llama-2-13b --accelerators", "l4,h100-s", "l4,h100-sxm"),
        ("size llama-2-13b --engine", "vll", "vllm"),
        ("size llama-2-13b", "--acc", "--accelerator"),
    ],
)
def test_names_are_completed(line: str, incomplete: str, expected: str) -> None:
    """Models, accelerators, workloads, policies, engines and options; of a list the last."""
    assert expected in offered(line, incomplete)


def test_what_is_no_name_may_be_a_file() -> None:
    """A path is left to the shell."""
    completer = BashComplete(servewise, {}, "servewise", "X")

    assert [each.type for each in completer.get_completions(["size"], "./conf")] == ["file"]
