"""Disks that are full, and file systems that become read-only: real ones, under the real command line.

What had ended before is opened by ``report`` and marked, one line says what failed and what to do, and with room again
the measurement comes to its end.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.running import invoke, workload
from tests.cli.small_disks import Namespace, breaking_disk, broken, mended, mount_again, photographed, small_disk

from servewise.atomic import is_part
from servewise.measure.mock.plan import MockPlan
from servewise.measure.mock.process import RunningMock, running_mock
from servewise.records.journal import as_line
from servewise.records.run_directory import read_run

KNOWN = ("--model", "mock", "--hardware", "2 cores", "--precision", "bf16", "--input-tokens", "20", "--warmup", "1")
ASKED = ("simulate", "llama-2-13b", "--accelerator", "a100-80gb", "--estimator", "ideal", "--seeds", "1")
SERVEWISE = (sys.executable, "-m", "servewise")
PATIENCE_S = 60
FLUSHED_S = 20.0  # a second, on a machine that does much else; less than the kernel's 30 s
SEED = 5  # of the moments; what they fall upon is this machine's


@pytest.fixture(scope="module")
def server() -> Iterator[RunningMock]:
    """A quick server."""
    with running_mock(MockPlan(first_s=(0.001, 0.002), gap_s=0.0002)) as found:
        yield found


def bench(server: RunningMock, run: Path, *more: str) -> tuple[str, ...]:
    """The command line of a measurement whose rows are some 1.3 kB each."""
    usual = ("--output-tokens", "64", "--repeats", "1", "--run-dir", str(run))
    return (*SERVEWISE, "bench", server.url, *KNOWN, *usual, *more)


def reported(place: Path) -> dict[str, Any]:
    """What ``report`` says of it."""
    found = invoke("report", str(place), "--json")
    assert found.exit_code == 0, found.stderr
    document: dict[str, Any] = json.loads(found.stdout)
    return document


def codes(document: dict[str, Any]) -> set[str]:
    """Of its caveats."""
    return {each["code"] for each in document["caveats"]}


def strays(place: Path) -> list[str]:
    """Files that were being written and were left."""
    return [each.name for each in place.rglob("*") if is_part(each.name)]


def whole_runs(place: Path) -> list[int]:
    """How many requests each of the runs has that came to its end."""
    found = [read_run(each.parent) for each in place.rglob("run.json") if "cut" not in each.parts]
    return [len(each.requests) for each in found if not any(caveat.code == "partial-run" for caveat in each.caveats)]


def made_to_the_end(space: Namespace, run: Path, requests: list[int]) -> None:
    """--resume goes on, and what is there then is whole."""
    again = invoke("bench", "--resume", str(seen(space, run)), "--json")
    assert again.exit_code == 0, again.stderr
    assert whole_runs(seen(space, run)) == requests
    assert "partial-run" not in codes(json.loads(again.stdout)) | codes(reported(seen(space, run)))
    assert strays(space.seen) == []


def seen(space: Namespace, run: Path) -> Path:
    """The run from outside."""
    return space.seen / run.relative_to(space.place)


@pytest.mark.slow
def test_a_full_disk_ends_a_measurement_that_goes_on_when_there_is_room(server: RunningMock, tmp_path: Path) -> None:
    """160 KiB for 400 requests: exit 2, the reason and what to do in one line, every row that is there a request."""
    with small_disk(tmp_path, 160) as space:
        run = space.place / "run"
        ended = space.run(*bench(server, run, "--concurrency", "8", "--requests", "400"))
        document, kept = reported(seen(space, run)), read_run(seen(space, run))
        lines = (seen(space, run) / "requests.partial.jsonl").read_bytes()

        assert ended.returncode == 2
        assert ended.stderr.count("\n") == 1
        assert "No space left on device" in ended.stderr
        assert f"go on with it: servewise bench --resume {run}" in ended.stderr
        assert "Latency by load" in ended.stdout
        assert codes(document) >= {"partial-run"}
        assert len(kept.requests) == lines.count(b"\n") > 60
        assert lines.endswith(b"\n")
        assert strays(space.seen) == []
        still = invoke("bench", "--resume", str(seen(space, run)))
        assert (still.exit_code, still.stderr.count("\n")) == (2, 1), still.stderr
        assert "No space left on device" in still.stderr
        assert rows_of(seen(space, run)) == [as_line(kept.requests, row) for row in range(len(kept.requests))]
        assert (seen(space, run) / "requests.partial.jsonl").read_bytes() == lines
        space.must("mount", "-o", "remount,size=8m", str(space.place))
        again = space.run(*SERVEWISE, "bench", "--resume", str(run), "--json")
        assert again.returncode == 0, again.stderr
        assert codes(json.loads(again.stdout)) >= {"resumed"}
        made_to_the_end(space, run, [400])
        assert len(read_run(seen(space, run) / "cut" / "run-1").requests) == len(kept.requests)


@pytest.mark.slow
def test_whatever_room_there_is_nothing_is_half_written(server: RunningMock, tmp_path: Path) -> None:
    """From no free page on, page by page, full at another file each time: no folder, or one that opens and goes on."""
    ends = set()
    with small_disk(tmp_path) as space:
        options = (*KNOWN, "--output-tokens", "64", "--repeats", "1", "--concurrency", "1,2", "--requests", "12")
        filler = space.seen / "filler"
        for pages in (0, 2, 3, 4, 6, 8, 12, 16, 30):
            run = space.seen / f"run-{pages}"
            filler.write_bytes(bytes((128 - used_pages(space) - pages) * 4096))
            ended = invoke("bench", server.url, *options, "--run-dir", str(run))
            left = sorted(each.name for each in run.iterdir()) if run.exists() else []
            ends.add((ended.exit_code, tuple(left)))

            assert ended.exit_code in (0, 2), ended.stderr
            assert (ended.exit_code == 0) == (ended.stderr == "")
            assert ended.stderr.count("\n") <= 1
            assert strays(space.seen) == []
            if left:
                assert ("partial-run" in codes(reported(run))) == (ended.exit_code == 2)
            filler.unlink()
            if left:
                made_to_the_end(space, space.place / run.name, [12, 12])
            space.must("rm", "-rf", str(space.place / run.name))
    assert len(ends) >= 4, ends


def used_pages(space: Namespace) -> int:
    """Of the 128 of the file system."""
    said = space.run("stat", "-f", "-c", "%b %f", str(space.place)).stdout.split()
    return int(said[0]) - int(said[1])


@pytest.mark.slow
def test_a_disk_that_breaks_in_mid_run_loses_nothing_that_was_flushed(server: RunningMock, tmp_path: Path) -> None:
    """ext4, made read-only under open files: exit 2 in one line; after unmounting and fsck the flushed rows are there.

    A row is on the disk a second after it ended, long before the kernel writes by itself (30 s): all up to the one that
    is seen in the device come back.
    """
    with breaking_disk(tmp_path) as space:
        run = space.place / "run"
        command = space.joined(*bench(server, run, "--concurrency", "1", "--requests", "250"))
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
            line = row_of(seen(space, run) / "requests.partial.jsonl", 20, running)
            seen_in(tmp_path / "image", line)
            broken(space)
            _, said = running.communicate(timeout=PATIENCE_S)
        before = rows_of(seen(space, run))
        mended(space, tmp_path)
        document, after = reported(seen(space, run)), rows_of(seen(space, run))

        assert running.returncode == 2
        assert said.count("\n") == 1
        assert "Read-only file system" in said
        assert f"servewise bench --resume {run}" in said
        assert "partial-run" in codes(document)
        assert after == before[: len(after)]
        assert len(after) >= 20
        made_to_the_end(space, run, [250])


@pytest.mark.slow
def test_the_disk_as_a_power_cut_would_leave_it_opens(server: RunningMock, tmp_path: Path) -> None:
    """ext4 on a loop device, whose image is copied at a dozen random moments of a measurement of four runs.

    Each is checked and mounted as after a power cut: report opens it, and the runs that were finished when the next was
    begun are whole.
    """
    with breaking_disk(tmp_path, 8) as space:
        run = space.place / "run"
        command = space.joined(*bench(server, run, "--concurrency", "1,2,3,4", "--requests", "60"))
        images: list[tuple[set[str], Path]] = []
        moments = random.Random(SEED)
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
            due, finished, known = time.monotonic(), set[str](), set[str]()
            while running.poll() is None and time.monotonic() < due + PATIENCE_S:
                there = {each.name for each in seen(space, run).glob("concurrency-*")}
                # a run is begun when the last is finished
                finished, known = (finished | known if there > known else finished), there
                if len(images) < 12 and time.monotonic() >= due and there:
                    images.append((finished, tmp_path / f"image-{len(images)}"))
                    photographed(running, tmp_path / "image", images[-1][1])
                    due = time.monotonic() + moments.uniform(0.0, 0.6)
                time.sleep(0.02)
        ended = running.returncode
        space.must("umount", str(space.place))
        for finished, image in images:
            mount_again(space, image)
            rows = {each: len(read_run(seen(space, run) / each).requests) for each in finished}
            assert rows == dict.fromkeys(finished, 60)
            document, whole = reported(seen(space, run)), whole_runs(seen(space, run))
            assert len(whole) >= len(finished)
            assert ("partial-run" in codes(document)) == (whole != [60] * 4)
            space.must("umount", str(space.place))

    assert ended == 0
    assert len(images) >= 4
    assert any(finished for finished, _ in images)


def rows_of(run: Path) -> list[dict[str, Any]]:
    """Every request that is read there."""
    found = read_run(run).requests
    return [as_line(found, row) for row in range(len(found))]


def row_of(journal: Path, number: int, running: subprocess.Popen[str]) -> bytes:
    """The ``number``-th line, once it is there."""
    patience = time.monotonic() + PATIENCE_S
    while True:
        lines = journal.read_bytes().splitlines(keepends=True) if journal.exists() else []
        if len(lines) > number:
            return lines[number - 1]
        assert running.poll() is None, running.communicate()
        assert time.monotonic() < patience
        time.sleep(0.02)


def seen_in(image: Path, line: bytes) -> None:
    """Returns when the end of ``line`` has come to the device, and the file system had a second to note its length."""
    patience = time.monotonic() + FLUSHED_S
    while line[-40:] not in image.read_bytes():
        assert time.monotonic() < patience, "it was not flushed"
        time.sleep(0.05)
    time.sleep(1.0)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [small_disk, breaking_disk])
def test_read_only_between_two_runs_keeps_the_first(server: RunningMock, tmp_path: Path, kind: Any) -> None:
    """Mounted read-only when one of four runs had ended: it is whole, the others are done by --resume."""
    with kind(tmp_path, 8 if kind is breaking_disk else 8192) as space:
        run = space.place / "run"
        options = ("--concurrency", "1,2,3,4", "--requests", "12", "--warmup", "20")
        command = space.joined(*bench(server, run, *options))
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
            read_only_after_one(space, run, running)
            _, said = running.communicate(timeout=PATIENCE_S)
        document = reported(seen(space, run))
        whole = whole_runs(seen(space, run))

        assert running.returncode == 2, said
        assert said.count("\n") == 1
        assert "Read-only file system" in said
        assert "partial-run" in codes(document)
        assert whole in ([12], [12] * 2, [12] * 3)
        space.must("mount", "-o", "remount,rw", str(space.place))
        made_to_the_end(space, run, [12] * 4)
        assert "resumed" in codes(reported(seen(space, run)))


def read_only_after_one(space: Namespace, run: Path, running: subprocess.Popen[str]) -> None:
    """Mounted read-only as soon as one run is whole and no file is open for writing: the kernel refuses it before.

    That is so while a run warms up.
    """
    patience = time.monotonic() + PATIENCE_S
    while time.monotonic() < patience:
        assert running.poll() is None, running.communicate()
        if any(b'"partial"' not in each.read_bytes() for each in seen(space, run).glob("concurrency-*/run.json")):
            found = space.run(
                *("sh", "-c", f"until mount -o remount,ro {space.place} 2>/dev/null; do [ -d {run} ] || exit 1; done")
            )
            assert found.returncode == 0
            return
    raise AssertionError("no run came to its end")


@pytest.mark.slow
def test_a_simulation_on_a_full_disk_is_made_again_by_its_command(tmp_path: Path) -> None:
    """Its records come at the end and find no room: one line, the folder marked; the same command then makes it."""
    with small_disk(tmp_path, 64) as space:
        run, load = space.place / "run", workload(tmp_path)
        Path(load).write_text(Path(load).read_text().replace("requests = 60", "requests = 4000"))
        command = (*SERVEWISE, *ASKED, "--workload", load, "--rate", "1", "--run-dir", str(run), "--processes", "2")
        ended = space.run(*command)
        marked = reported(seen(space, run))
        space.must("mount", "-o", "remount,size=8m", str(space.place))
        again = space.run(*command)

        assert ended.returncode == 2
        assert ended.stderr.count("\n") == 1
        assert "No space left on device); make room there" in ended.stderr
        assert "Latency by policy and rate" in ended.stdout
        assert "could not be written" in " ".join(ended.stdout.split())
        assert "partial-run" in codes(marked)
        assert marked["result"]["rows"] == []
        assert again.returncode == 0, again.stderr
        assert "partial-run" not in codes(reported(seen(space, run)))
        assert len(read_run(seen(space, run)).requests) == 4000
        assert strays(space.seen) == []


@pytest.mark.slow
@pytest.mark.parametrize("command", ["simulate", "fleet"])
def test_a_long_simulation_on_a_full_disk_leaves_no_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, command: str
) -> None:
    """Rows that leave memory as they are made: the figures are those of a run that is not kept, the part that grew
    goes, the folder opens and says what it is."""
    monkeypatch.setattr("servewise.ask.long_runs.LONG", 1_000)
    with small_disk(tmp_path, 64) as space:
        load = workload(tmp_path)
        Path(load).write_text(Path(load).read_text().replace("requests = 60", "requests = 4000"))
        asked = (command, *ASKED[1:], "--workload", load, "--rate", "1,2", "--json")
        plain, keep = invoke(*asked), ("--run-dir", str(space.seen / "run"))
        ended = invoke(*asked, *keep)
        marked = reported(space.seen / "run")
        left = strays(space.seen)
        space.must("mount", "-o", "remount,size=8m", str(space.place))
        again = invoke(*asked, *keep)

        assert (ended.exit_code, left) == (2, [])
        assert caplog.text.count("No space left on device") == 2
        assert codes(json.loads(ended.stdout)) - codes(json.loads(plain.stdout)) == {"not-kept"}
        assert json.loads(ended.stdout)["result"] == json.loads(plain.stdout)["result"]
        assert "partial-run" in codes(marked)
        assert again.exit_code == 0, again.stderr
        assert again.stdout == plain.stdout
        assert whole_runs(space.seen / "run") == [4000, 4000]


def test_a_sweep_whose_results_find_no_room_gives_them_all_the_same(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """--keep on a full disk: one line, the whole answer; with room again the same command takes what was kept."""
    with small_disk(tmp_path, 8) as space:
        asked = (*ASKED, "--workload", workload(tmp_path), "--rate", "1,2,3,4,5,6", "--json")
        keep, said, answers = ("--keep", str(space.seen / "kept")), [], [invoke(*asked)]
        for again in range(3):
            caplog.clear()
            answers.append(invoke(*asked, *keep))
            said.append(caplog.text)
            if again == 0:
                space.must("mount", "-o", "remount,size=8m", str(space.place))

        assert [each.exit_code for each in answers] == [0] * 4
        assert {each.stdout for each in answers} == {answers[0].stdout}
        assert said[0].count("no more results are kept (No space left on device)") == 1
        assert "of 7 tasks were done before" in said[1]
        assert "7 of 7 tasks were done before" in said[2]
        assert "7 of 7" not in said[1]


@pytest.mark.slow
def test_an_answers_file_stays_what_it_was(tmp_path: Path) -> None:
    """-o where nothing can be written, full or read-only: exit 2, one line, the old answer whole, nothing beside it."""
    with small_disk(tmp_path, 64) as space:
        asked = ("size", "llama-2-13b", "--accelerator", "a100-80gb", "-o", str(space.place / "answer.html"))
        first = space.run(*SERVEWISE, *asked)
        old = (space.seen / "answer.html").read_bytes()
        space.run("sh", "-c", f"cat /dev/zero > {space.place}/filler")
        full = space.run(*SERVEWISE, *asked, "--context", "1k")
        space.must("mount", "-o", "remount,ro", str(space.place))
        read_only = space.run(*SERVEWISE, *asked, "--context", "1k")

        assert [each.returncode for each in (first, full, read_only)] == [0, 2, 2]
        for ended in (full, read_only):
            assert ended.stderr.count("\n") == 1
            assert str(space.place) in ended.stderr
        assert (space.seen / "answer.html").read_bytes() == old
        assert sorted(each.name for each in space.seen.iterdir()) == ["answer.html", "filler"]
