"""``bench --resume``: what is whole is kept and not sent again, what was cut off is measured again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.records import made

from servewise.ask.bench import Benched, bench, resume
from servewise.ask.bench_options import BenchOptions
from servewise.ask.run import run_answer
from servewise.errors import InputError
from servewise.measure.mock.plan import MockPlan
from servewise.measure.mock.process import RunningMock, running_mock
from servewise.records.claim import Claim
from servewise.records.open_run import OpenRun
from servewise.records.run_directory import read_run

OPTIONS: dict[str, Any] = {
    "model": "mock", "hardware": "2 cores", "precision": "bf16", "input_tokens": "10-40", "output_tokens": "2-6",
    "warmup": 1, "requests": 8, "repeats": 2, "concurrency": (1, 3),
}  # fmt: skip
RUNS = ["concurrency-1-1", "concurrency-1-2", "concurrency-3-1", "concurrency-3-2"]
PROBES = 6  # at most, in one go: does it answer, does it stream, how long are its words


@pytest.fixture(scope="module")
def server() -> Iterator[RunningMock]:
    """A quick server."""
    with running_mock(MockPlan(first_s=(0.005, 0.005), gap_s=0.002)) as found:
        yield found


def measured(server: RunningMock, folder: Path, *, runs: int | None = None, **options: Any) -> Benched | None:
    """A measurement; with ``runs``, one that is interrupted after so many of them."""

    def progress(done: int, _: int) -> None:
        if done == runs:
            raise KeyboardInterrupt

    wanted = BenchOptions(**OPTIONS | options, run_dir=str(folder))
    try:
        return bench(server.url, wanted, progress=progress)
    except KeyboardInterrupt:
        return None


def changed(path: Path, **more: Any) -> None:
    """Some keys of a JSON file replaced."""
    path.write_text(json.dumps(json.loads(path.read_text()) | more))


def changed_asked(folder: Path, **more: Any) -> None:
    """What was asked for, as if it had been otherwise."""
    found = json.loads((folder / "begun.json").read_text())
    changed(folder / "begun.json", asked=found["asked"] | more)


def cut_off(directory: Path, rows: int) -> None:
    """The run in ``directory`` as a kill after its first rows would have left it."""
    record = replace(read_run(directory), details={})
    for each in directory.iterdir():
        each.unlink()
    directory.rmdir()
    run = OpenRun.begin(directory, record)
    for row in range(rows):
        run.append(record.requests, row)
    run.close()


@pytest.mark.parametrize("load", [{}, {"concurrency": None, "rate": (40.0, 80.0), "arrivals": "constant"}])
def test_what_is_made_again_of_kept_runs_is_what_was_measured(
    server: RunningMock, tmp_path: Path, load: dict[str, Any]
) -> None:
    """All runs whole, the answer lost: it comes back key by key as it was, and no request of the load is sent."""
    first = measured(server, tmp_path / "d", **load)
    assert first is not None
    (tmp_path / "d" / "bench.json").unlink()
    changed(tmp_path / "d" / "begun.json", whole=False)
    server.forget()
    again = resume(tmp_path / "d")

    assert again.answer.to_json()["result"] == first.answer.to_json()["result"]
    assert again.answer.conditions == first.answer.conditions
    assert {each.code for each in again.answer.caveats} - {each.code for each in first.answer.caveats} == {"resumed"}
    assert len(server.log()) <= PROBES


def test_an_interrupted_measurement_is_gone_on_with(server: RunningMock, tmp_path: Path) -> None:
    """Interrupted after two of four runs: the other two are sent, with their warm-ups, and the gap is told."""
    measured(server, tmp_path / "d", runs=2)
    held = [name for name in RUNS if (tmp_path / "d" / name).exists()]
    marked = run_answer(tmp_path / "d")
    server.forget()
    found = resume(tmp_path / "d")

    assert len(held) == 2
    assert "2 of 4 runs are whole" in next(each.message for each in marked.caveats if each.code == "partial-run")
    assert [each["requests"] for each in found.answer.result["rows"]] == [16, 16]
    assert 2 * (8 + 1) <= len(server.log()) <= 2 * (8 + 1) + PROBES
    assert "resumed" in {each.code for each in found.answer.caveats}
    assert "partial-run" not in {each.code for each in found.answer.caveats}
    assert found.ended == "whole"
    assert sorted(each.name for each in (tmp_path / "d").iterdir()) == ["begun.json", "bench.json", *RUNS]


def test_a_run_that_was_cut_off_is_measured_again_whole_and_its_rows_stay(server: RunningMock, tmp_path: Path) -> None:
    """Its first part goes to cut/, is in no figure, and is still a run that opens."""
    measured(server, tmp_path / "d")
    cut_off(tmp_path / "d" / RUNS[2], 3)
    changed(tmp_path / "d" / "begun.json", whole=False)
    (tmp_path / "d" / "bench.json").unlink()
    found = resume(tmp_path / "d")
    resumed = next(each for each in found.answer.caveats if each.code == "resumed")

    assert f"{RUNS[2]} was measured again whole" in resumed.message
    assert len(read_run(tmp_path / "d" / RUNS[2]).requests) == 8
    assert len(read_run(tmp_path / "d" / "cut" / f"{RUNS[2]}-1").requests) == 3
    assert [row["completed"] for row in run_answer(tmp_path / "d").result["rows"]] == [
        row["completed"] for row in found.answer.result["rows"]
    ]
    assert "partial-run" not in {each.code for each in run_answer(tmp_path / "d").caveats}
    assert run_answer(tmp_path / "d" / "cut").caveats[0].code == "partial-run"


def test_one_run_alone_is_its_folder_and_is_gone_on_with_too(server: RunningMock, tmp_path: Path) -> None:
    """Without repeats the folder is the run: its cut part goes to cut/run-1, the run takes its place."""
    alone: dict[str, Any] = {"concurrency": (2,), "repeats": 1}
    measured(server, tmp_path / "d", **alone)
    whole = replace(read_run(tmp_path / "d"), details={})
    for name in ("requests.parquet", "client.json", "bench.json"):
        (tmp_path / "d" / name).unlink()
    run = OpenRun.begin(tmp_path / "d", whole, claimed=True)
    run.append(whole.requests, 0)
    run.close()
    changed(tmp_path / "d" / "begun.json", whole=False)
    found = resume(tmp_path / "d")

    assert found.answer.result["rows"][0]["requests"] == 8
    assert list(read_run(tmp_path / "d" / "cut" / "run-1").requests.id) == [whole.requests.id[0]]
    assert sorted(each.name for each in (tmp_path / "d").iterdir()) == [
        *("begun.json", "bench.json", "client.json", "cut", "requests.parquet", "run.json")
    ]


def test_a_run_whose_files_are_damaged_is_measured_again(server: RunningMock, tmp_path: Path) -> None:
    """A flipped bit in a kept run is no reason to trust it, nor to lose the others."""
    measured(server, tmp_path / "d", concurrency=(2,))
    path = tmp_path / "d" / "concurrency-2-1" / "requests.parquet"
    data = bytearray(path.read_bytes())
    data[50] ^= 1
    path.write_bytes(data)
    changed(tmp_path / "d" / "begun.json", whole=False)
    found = resume(tmp_path / "d")

    assert found.answer.result["rows"][0]["requests"] == 16
    assert (tmp_path / "d" / "cut" / "concurrency-2-1-1").is_dir()


def test_a_search_decides_again_as_it_did(server: RunningMock, tmp_path: Path) -> None:
    """The levels that were tried are kept: the search comes to the same knee without sending them."""
    search: dict[str, Any] = {"concurrency": None, "search": "concurrency", "slo": "e2e_p95<=20ms", "repeats": 1}
    first = measured(server, tmp_path / "d", **search)
    assert first is not None
    changed(tmp_path / "d" / "begun.json", whole=False)
    server.forget()
    again = resume(tmp_path / "d")

    assert again.answer.result["search"] == first.answer.result["search"]
    assert len(server.log()) <= PROBES


def test_what_is_whole_is_answered_without_a_server(server: RunningMock, tmp_path: Path) -> None:
    """A loop of --resume until it succeeds ends: the answer of a whole measurement is given again."""
    first = measured(server, tmp_path / "d")
    server.forget()
    assert first is not None

    assert resume(tmp_path / "d").answer.to_json() == first.answer.to_json()
    assert len(server.log()) == 0


@pytest.fixture(scope="module")
def begun(server: RunningMock, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A measurement that was interrupted, of prompts in a file, with a key and a header."""
    folder = tmp_path_factory.mktemp("begun")
    (folder / "prompts.txt").write_text("one prompt\nanother prompt\n")
    more = {
        "prompts": str(folder / "prompts.txt"),
        "input_tokens": "512",
        "api_key": "key-1234",
        "headers": ("X-Team: blue",),
    }
    measured(server, folder / "d", runs=1, **more)
    return folder / "d"


SECRETS: dict[str, Any] = {"api_key": "key-1234", "headers": ("X-Team: red",)}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"concurrency": (1, 4)}, "was begun with --concurrency 1,3, not 1,4"),
        ({"seed": 7, "repeats": 5}, "was begun with --repeats 2, not 5"),
        ({"slo": "ttft_p95<=1s"}, "was begun with --slo left out, not ttft_p95<=1s"),
        ({"headers": ("X-Other: blue",)}, "was begun with --headers X-Team, not X-Other"),
    ],
)
def test_the_first_option_that_differs_is_named(begun: Path, given: dict[str, Any], words: str) -> None:
    """Repeats of two set-ups have no interval in common: one line says which option it is."""
    with pytest.raises(InputError, match=words):
        resume(begun, given=SECRETS | given)


def test_secrets_are_asked_for_again(begun: Path) -> None:
    """Neither key nor header's value is in the folder, and without them nothing is sent."""
    kept = (begun / "begun.json").read_text()

    assert "key-1234" not in kept
    assert "blue" not in kept
    with pytest.raises(InputError, match="begun with a key, which is not kept"):
        resume(begun, given={"headers": SECRETS["headers"]})
    with pytest.raises(InputError, match=r"begun with headers \(X-Team\)"):
        resume(begun, given={"api_key": "key-1234"})


def test_another_file_version_or_server_is_refused(begun: Path, server: RunningMock) -> None:
    """Prompts that have changed, another servewise, another engine behind the address: each by its name."""
    prompts = begun.parent / "prompts.txt"
    before, asked = prompts.read_text(), json.loads((begun / "begun.json").read_text())["asked"]
    prompts.write_text("something else\n")
    with pytest.raises(InputError, match="another content of --prompts"):
        resume(begun, given=SECRETS)
    prompts.write_text(before)
    for change, words in (
        ({"version": "0.0.1"}, "begun with servewise 0.0.1, not"),
        ({"engine": "vllm 0.11.0"}, "the runs before are of vllm 0.11.0"),
    ):
        changed_asked(begun, **asked | change)
        with pytest.raises(InputError, match=words):
            resume(begun, given=SECRETS)
    changed_asked(begun, **asked)
    with pytest.raises(InputError, match="begun with the server at http"):
        resume(begun, "http://127.0.0.1:1", given=SECRETS)
    assert len(list(begun.glob("concurrency-*"))) == 1


def test_a_live_writer_refuses_a_second(begun: Path) -> None:
    """Two programs never write one directory; the lock of a dead one does not block."""
    claim = Claim(begun)
    try:
        with pytest.raises(InputError, match="is being written by another program"):
            resume(begun, given=SECRETS)
    finally:
        claim.release()


def test_a_folder_without_a_measurement_is_refused(tmp_path: Path) -> None:
    """Nothing was begun: one line that says how to begin."""
    OpenRun.begin(tmp_path / "run", replace(made.simulated_run(), kind="measured")).close()
    for place in ("run", "none"):
        with pytest.raises(InputError, match="holds no measurement to go on with"):
            resume(tmp_path / place)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("arrivals", None), ("input_tokens", 5), ("slo", [1]), ("repeats", True), ("repeats", "2"), ("rate", ["1"]),
        ("ignore_eos", "no"), ("headers", 3), ("hardware", "\ud800"), ("api_key", "secret"), ("think", None),
    ],
)  # fmt: skip
def test_an_edited_option_is_refused_by_name(server: RunningMock, tmp_path: Path, name: str, value: Any) -> None:
    """Of another kind than what bench writes: one line names it, and nothing is sent."""
    measured(server, tmp_path / "x", runs=1)
    options = json.loads((tmp_path / "x" / "begun.json").read_text())["asked"]["options"]
    changed_asked(tmp_path / "x", options=options | {name: value})
    with pytest.raises(InputError, match=f"--{name.replace('_', '-')} "):
        resume(tmp_path / "x")


@pytest.mark.parametrize("key", ["result", "conditions"])
def test_an_edited_answer_is_made_again(server: RunningMock, tmp_path: Path, key: str) -> None:
    """An answer that is not as it was written is not given: it is made again of the rows."""
    before = measured(server, tmp_path / "x")
    assert before is not None
    changed(tmp_path / "x" / "bench.json", **{key: {}})
    again = resume(tmp_path / "x")

    assert again.answer.result["rows"] == before.answer.result["rows"]
    assert resume(tmp_path / "x").answer.to_json() == json.loads((tmp_path / "x" / "bench.json").read_text())


def test_edited_gaps_are_refused(server: RunningMock, tmp_path: Path) -> None:
    """The gaps before are numbers of seconds, or the folder does not say what was measured."""
    measured(server, tmp_path / "x", runs=1)
    changed_asked(tmp_path / "x", goes=[1])
    with pytest.raises(InputError, match="does not say what was measured"):
        resume(tmp_path / "x")
