"""Where tasks are done, as it is asked for."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from servewise.errors import InputError, RunFailed
from servewise.executing import cluster
from servewise.executing.cluster import connect
from servewise.executing.executor import executor_named


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("rya", "executor: unknown executor 'rya'; did you mean ray?"),
        ("dask", "executor: unknown executor 'dask'; local, ray, ray://host:port or host:port"),
        ("ray://head", "executor: 'ray://head' is no address"),
        ("ray://", "executor: 'ray://' is no address"),
        ("head:http", "executor: 'head:http' is no address"),
        ("head:0", "executor: 'head:0' is no address"),
        ("dask://head:8786", "executor: 'dask://head:8786' is no address"),
        ("", "executor: unknown executor ''"),
    ],
)
def test_other_words_are_refused(name: str, line: str) -> None:
    """A word that is no executor, or an address without a port, is one line that names what there is."""
    with pytest.raises(InputError) as raised:
        executor_named(name)

    assert str(raised.value).startswith(line)


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1"])
def test_a_cluster_that_does_not_answer_is_one_line(address: str) -> None:
    """Nobody listens on port 1: said at once, without Ray's own minutes of waiting."""
    pytest.importorskip("ray")

    with pytest.raises(RunFailed, match=f"no Ray cluster at {address}: Connection refused"), connect(address):
        pass


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where Ray is not installed, the line says what to install."""
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.setattr(cluster, "_keep_to_this_machine", lambda: None)

    with pytest.raises(InputError, match=r"Ray is not installed; pip install 'servewise\[ray\]'"), connect():
        pass


def test_a_note_of_a_cluster_that_is_gone_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """RAY_ADDRESS goes before the note that `ray start` leaves, and a note to which nobody answers is none."""
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    note = tmp_path / "ray" / "ray_current_cluster"
    note.parent.mkdir()
    note.write_text("127.0.0.1:1")
    assert cluster.running() is None

    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.5:6379")
    assert cluster.running() == "10.0.0.5:6379"
