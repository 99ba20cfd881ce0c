"""What the last self-test found, kept for later runs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from servewise.measure.self_test.accuracy import Accuracy, Errors
from servewise.measure.self_test.kept import beyond_self_test, folder_of_cache, keep, known_error


def accuracy(streams: int, tokens_per_s: float, ttft_p99_s: float, failed: int = 0) -> Accuracy:
    """What a trial at that load found."""
    errors = Errors(0.0, ttft_p99_s / 2, ttft_p99_s / 2, ttft_p99_s, ttft_p99_s, 100)
    return Accuracy(
        streams=streams,
        workers=1,
        requests=100,
        failed=failed,
        tokens=6400,
        wall_s=1.0,
        tokens_per_s=tokens_per_s,
        ttft=errors,
        tpot=replace(errors, p99_size_s=ttft_p99_s / 100),
        arrival=errors,
        cpu_s_per_token=1e-5,
        server_cpu_s_per_token=1e-5,
        send_p99_s=1e-5,
        server_late_p99_s=1e-4,
        lateness_p99_s=1e-4,
        stamped="kernel",
    )


FOUND = [
    accuracy(1, 40, 0.0001),
    accuracy(32, 1400, 0.002),
    accuracy(256, 11_000, 0.0008),
    accuracy(1024, 30_000, 0.03),
]


def test_the_error_of_the_least_load_that_covers(tmp_path: Path) -> None:
    """Both streams and tokens/s must lie within a tested load, and no smaller load's larger error is passed over."""
    assert keep(FOUND, "2026-01-01", tmp_path) == tmp_path / "self-test.json"
    cases = {(1, 40): 0.0001, (2, 40): 0.002, (1, 41): 0.002, (100, 9000): 0.002, (1000, 30_000): 0.03}
    for (streams, tokens_per_s), error_s in cases.items():
        known = known_error(streams, tokens_per_s, tmp_path)
        assert known is not None
        assert known.ttft_p99_s == error_s
        assert known.tpot_p99_s == error_s / 100
    assert known_error(1025, 1, tmp_path) is None
    assert known_error(1, 30_001, tmp_path) is None


def test_caveats_of_a_later_run(tmp_path: Path) -> None:
    """Within what was tested and found good: none; where the error is large, or beyond: each its own, with a cure."""
    assert beyond_self_test(10_000, 1e9, tmp_path) == ()
    keep(FOUND, "2026-01-01", tmp_path)
    assert beyond_self_test(256, 10_000, tmp_path) == ()
    assert [each.code for each in beyond_self_test(1000, 20_000, tmp_path)] == ["client-error-large"]
    (beyond,) = beyond_self_test(2000, 20_000, tmp_path)
    assert beyond.code == "beyond-self-test"
    assert "2000" in beyond.message
    assert beyond.cure


def test_a_load_that_failed_is_not_known(tmp_path: Path) -> None:
    """A load at which requests failed says nothing about the error there."""
    keep([accuracy(1, 40, 0.0001), accuracy(32, 1400, 0.0001, failed=3)], "2026-01-01", tmp_path)
    assert known_error(1, 40, tmp_path) is not None
    assert known_error(32, 1400, tmp_path) is None


@pytest.mark.parametrize(
    "text",
    [b"", b"\xff\xfe", b"[]", b"{}", b"[" * 100_000, b'{"schema": "servewise.self-test/1"}', b"null"],
    ids=["empty", "no text", "a list", "no fields", "deep", "half", "null"],
)
def test_a_damaged_file_is_no_file(tmp_path: Path, text: bytes) -> None:
    """Whatever stands in the kept file, nothing is raised, and nothing is known."""
    (tmp_path / "self-test.json").write_bytes(text)
    assert known_error(1, 1, tmp_path) is None
    assert beyond_self_test(1, 1, tmp_path) == ()


def test_damaged_rows_are_left_out(tmp_path: Path) -> None:
    """Rows that are no numbers are passed over; the others hold."""
    path = keep(FOUND, "2026-01-01", tmp_path)
    assert path is not None
    document = json.loads(path.read_text())
    document["rows"] = [None, 3, {"streams": "many"}, {"streams": True}, {"streams": -1}, document["rows"][0]]
    path.write_text(json.dumps(document))
    assert known_error(1, 40, tmp_path) is not None
    assert known_error(2, 40, tmp_path) is None


def test_another_machine_knows_nothing_of_this_one(tmp_path: Path) -> None:
    """A result that came from another machine, by a shared home, is not taken for this one's."""
    path = keep(FOUND, "2026-01-01", tmp_path)
    assert path is not None
    document = json.loads(path.read_text())
    document["machine"]["cores"] = 4096
    path.write_text(json.dumps(document))
    assert known_error(1, 1, tmp_path) is None


def test_nowhere_to_keep_is_no_failure(tmp_path: Path) -> None:
    """Where the cache cannot be written to, the test still has its result; it is just not kept."""
    (tmp_path / "file").write_text("")
    assert keep(FOUND, "2026-01-01", tmp_path / "file" / "below") is None


def test_the_cache_is_where_the_user_has_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """XDG_CACHE_HOME, as the XDG Base Directory Specification says, or ~/.cache where it is unset or empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert folder_of_cache() == tmp_path / "servewise"
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    assert folder_of_cache() == Path.home() / ".cache" / "servewise"
