"""``servewise models`` as a command: list, fetch, write."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from tests.cli.running import invoke
from tests.engine.tiny import tiny_checkpoint

from servewise.engine.checkpoint import load_checkpoint


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A models folder with one tiny llama, named by the environment."""
    monkeypatch.setenv("SERVEWISE_MODELS", str(tmp_path / "models"))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    tiny_checkpoint(tmp_path / "models" / "tiny")
    return tmp_path


def test_the_list_is_one_json_document(folder: Path) -> None:
    """CONTRACT's envelope, with the models of the folder that the environment names."""
    found = invoke("models", "--json")
    document = json.loads(found.stdout)

    assert found.exit_code == 0
    assert document["schema"] == "servewise.models/1"
    assert "tiny" in [each["name"] for each in document["result"]["models"]]
    assert document["result"]["models_dir"] == str(folder / "models")


def test_an_option_goes_before_the_environment(folder: Path) -> None:
    """--models-dir names another folder."""
    found = invoke("models", "--models-dir", str(folder / "none"), "--json")

    assert "tiny" not in [each["name"] for each in json.loads(found.stdout)["result"]["models"]]


def test_a_model_is_written_and_loads_again(folder: Path) -> None:
    """models write makes a checkpoint at --output; a second time it refuses, with exit code 2 on one line."""
    target = str(folder / "tiny.gguf")
    asked = ("models", "write", "tiny", "--format", "gguf", "--dtype", "q8_0", "--output", target)

    first, second = invoke(*asked, "--json"), invoke(*asked)

    assert first.exit_code == 0
    assert json.loads(first.stdout)["result"]["path"] == target
    assert load_checkpoint(target).stored == "Q8_0"
    assert (second.exit_code, second.stdout) == (2, "")
    assert "is there already" in second.stderr
    assert second.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["write", "tiny"], "--output"),
        (["write", "tinny", "-o", "x"], "did you mean tiny"),
        (["fetch", "tinny"], "give a hub id"),
        (["fetch"], "missing argument 'NAME'"),
        (["wrote"], "write"),
    ],
)
def test_mistakes_are_one_line(arguments: list[str], said: str, folder: Path) -> None:
    """Exit code 2, one line on stderr, nothing on stdout."""
    found = invoke("models", *arguments)

    assert (found.exit_code, found.stdout) == (2, "")
    assert found.stderr.startswith("servewise: ")
    assert found.stderr.count("\n") == 1
    assert said in found.stderr
