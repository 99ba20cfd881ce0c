"""What made a run stands in its header, and comes back."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from pathlib import Path

import pytest
from tests.records import made

from servewise.errors import InputError
from servewise.records.origin import Source, source_at
from servewise.records.run_directory import HEADER, read_run, write_run

SOURCE = Source(of="trace", name="t.csv", bytes=3, sha256=hashlib.sha256(b"a,b").hexdigest())


def test_a_file_is_known_by_its_content(tmp_path: Path) -> None:
    """Size and SHA-256 are of its bytes; the name is as it was given. A file that is not there is one line."""
    (tmp_path / "t.csv").write_bytes(b"a,b")

    assert source_at("trace", tmp_path / "t.csv", "t.csv") == SOURCE
    with pytest.raises(InputError, match="cannot be read"):
        source_at("trace", tmp_path / "none.csv")


@pytest.mark.parametrize("command", ["servewise bench 'a b'", "servewise simulate µ", "w\udcff.csv", ""])
def test_command_and_files_come_back(tmp_path: Path, command: str) -> None:
    """Also a name whose bytes are no text, as Python hands them over; the header stays JSON in UTF-8."""
    run = dataclasses.replace(made.simulated_run(), command=command, sources=(SOURCE,))
    write_run(tmp_path / "run", run)
    back = read_run(tmp_path / "run")

    assert (back.command, back.sources) == (command, (SOURCE,))
    assert json.loads((tmp_path / "run" / HEADER).read_bytes().decode("utf-8"))["command"] == command


def test_a_run_of_before_has_no_sources(tmp_path: Path) -> None:
    """Headers without the key are read as they were."""
    write_run(tmp_path / "run", made.simulated_run())
    path = tmp_path / "run" / HEADER
    header = json.loads(path.read_text())
    del header["sources"]
    path.write_text(json.dumps(header))

    assert read_run(tmp_path / "run").sources == ()


@pytest.mark.parametrize("sources", [{}, [1], [{"of": "trace"}], [SOURCE.to_json() | {"bytes": "3"}], "t.csv"])
def test_sources_of_no_known_form_are_refused(tmp_path: Path, sources: object) -> None:
    """One line that names the file."""
    write_run(tmp_path / "run", made.simulated_run())
    path = tmp_path / "run" / HEADER
    path.write_text(json.dumps(json.loads(path.read_text()) | {"sources": sources}))

    with pytest.raises(InputError, match=r"run\.json: sources must name files"):
        read_run(tmp_path / "run")
