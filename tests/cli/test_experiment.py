"""``servewise experiment`` as users meet it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.running import invoke

pytest.importorskip("torch")
pytest.importorskip("httptools")
pytest.importorskip("orjson")

from servewise.answer import Answer
from servewise.ask import experiment_serve_small as asked
from servewise.ask.experiment_serve_small import Experimented
from servewise.conditions import Conditions

CONDITIONS = Conditions(hardware="h", load="l", lengths="n", precision="p")


def answered(ended: str) -> Experimented:
    """An answer without rows."""
    return Experimented(Answer("experiment", CONDITIONS, {"experiment": "serve-small", "rows": []}), ended)


@pytest.mark.parametrize(("ended", "code"), [("whole", 0), ("server", 3), ("interrupted", 130)])
def test_the_exit_code_says_how_it_ended(monkeypatch: pytest.MonkeyPatch, ended: str, code: int) -> None:
    """And the answer is one JSON document in every case: what was measured is kept."""
    monkeypatch.setattr(asked, "experiment_serve_small", lambda **_: answered(ended))
    found = invoke("experiment", "serve-small", "--json")
    assert found.exit_code == code
    assert json.loads(found.stdout)["schema"] == "servewise.experiment/1"


def test_options_arrive_as_they_were_given(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Lists are split, the cache folder is the user's, a given llama-server is taken."""
    seen: dict[str, Any] = {}

    def experiment(**options: Any) -> Experimented:
        seen.update(options)
        return answered("whole")

    monkeypatch.setattr(asked, "experiment_serve_small", experiment)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    program = str(tmp_path / "llama-server")
    invoke("experiment", "serve-small", "--servers", "vllm,own", "--streams", "1,4", "--llama-server", program)
    assert tuple(seen["servers"]) == ("vllm", "own")
    assert tuple(seen["streams"]) == (1, 4)
    assert seen["places"].environments == tmp_path / "servewise" / "environments"
    assert seen["places"].llama_server == Path(program)


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [("--servers", "sglang", "llamacpp"), ("--parts", "8-bit", "16-bit"), ("--requests", "0", "requests")],
)
def test_wrong_input_is_one_line(tmp_path: Path, option: str, value: str, said: str) -> None:
    """Exit code 2, and what may be given is named; no folder is made."""
    folder = tmp_path / "runs"
    found = invoke("experiment", "serve-small", option, value, "--run-dir", str(folder))
    assert found.exit_code == 2
    assert said in found.stderr
    assert len(found.stderr.strip().splitlines()) == 1
    assert not folder.exists()
