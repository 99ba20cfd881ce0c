"""The notebooks under ``examples`` run, cell by cell, and what they show shows itself."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))


def cells(path: Path) -> list[str]:
    """The code of each cell, in order."""
    found = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return ["".join(each["source"]) for each in found if each["cell_type"] == "code"]


def shown(code: str, names: dict[str, Any]) -> object:
    """Runs a cell; what its last line is worth, as a notebook shows it."""
    body = ast.parse(code).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), "cell", "exec"), names)
    assert last is None or isinstance(last, ast.Expr)
    return None if last is None else eval(compile(ast.Expression(last.value), "cell", "eval"), names)


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=[each.stem for each in NOTEBOOKS])
def test_a_notebook_runs_from_top_to_bottom(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every cell runs after the one before, and what it shows has HTML of its own or is plain."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    found = [shown(each, names) for each in cells(path)]

    assert any(hasattr(each, "_repr_html_") for each in found)
    assert all(each is None or isinstance(each, str) or len(each._repr_html_()) > 100 for each in found)  # type: ignore[attr-defined]


def test_notebooks_are_kept_without_outputs() -> None:
    """No output is kept in the file: it would grow old."""
    assert NOTEBOOKS
    for path in NOTEBOOKS:
        found = json.loads(path.read_text(encoding="utf-8"))["cells"]
        assert all(not each["outputs"] for each in found if each["cell_type"] == "code")
