"""Programs killed at random moments: what is there after each kill must open, be true, and be gone on with.

    python -m benchmarks.killed --kills 100

Question: does any moment lose a run? A real ``servewise bench`` is sent SIGKILL at a random time, its folder is opened
by ``report``, its rows are held against the log of the stand-in server, ``--resume`` goes on and is killed in its turn,
until it comes to its end; then the next begins. ``servewise simulate`` likewise, its rows held against those of a run
that nobody killed. An AssertionError names what does not hold.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from click.testing import CliRunner

from servewise.cli.main import servewise
from servewise.measure.mock.plan import MockPlan
from servewise.measure.mock.process import RunningMock, running_mock
from servewise.records.begun import CUT, read_begun
from servewise.records.columns import COMPLETED
from servewise.records.run_directory import RunRecord, read_run

STREAMS, REPEATS, REQUESTS = (1, 3), 2, 16
BENCH = (
    *("--model", "mock", "--hardware", "loopback", "--precision", "none", "--input-tokens", "10-60"),
    *("--output-tokens", "2-9", "--warmup", "1", "--concurrency", ",".join(map(str, STREAMS))),
    *("--repeats", str(REPEATS), "--requests", str(REQUESTS)),
)
SIMULATE = ("llama-2-13b", "--accelerator", "a100-80gb", "--estimator", "ideal", "--seeds", "1", "--rate", "1,2,3")
FROM_BEGUN, LOOK_S = 0.8, 0.005  # of the kills of a simulation; its programs are long in starting
PLAN = MockPlan(first_s=(0.01, 0.02), gap_s=0.004)


@dataclass(slots=True)
class Killed:
    """How many kills met what; ``late`` came after the end."""

    kills: int = 0
    before: int = 0  # anything was there
    partial: int = 0
    whole: int = 0
    late: int = 0
    rows: int = 0  # held against the truth
    ended: int = 0  # measurements that came to their end, through however many kills
    by_kills: Counter[int] = field(default_factory=Counter)

    def __str__(self) -> str:
        """One line."""
        through = ", ".join(f"{count} after {kills}" for kills, count in sorted(self.by_kills.items()))
        ended = f"; {self.ended} came to their end ({through} kills)" if self.ended else ""
        return (
            f"{self.kills} kills: {self.before} before anything was there, {self.partial} left it partial, "
            f"{self.whole} whole, {self.late} came after its end; {self.rows} rows were held against the truth{ended}"
        )


def kill_bench(server: RunningMock, folder: Path, kills: int, rng: random.Random) -> Killed:
    """``kills`` of a measurement of ``server``, one measurement after another in folders under ``folder``."""
    found, place, through = Killed(), folder / "0", 0
    took_s = _took_s(_bench(server, folder / "whole"))
    server.forget()
    while found.kills < kills:
        if _killed(_bench(server, place), rng.uniform(0, took_s)):
            through += 1
            _opened(place, found)
            found.rows += _hold_against_log(server, place)
        else:
            _end_of_bench(place, found, through)
            place, through = folder / str(found.ended), 0
            server.forget()
    if through:  # the last one, to its end
        assert not _killed(_bench(server, place), None)
        _end_of_bench(place, found, through)
    return found


def kill_simulate(workload: Path, folder: Path, kills: int, rng: random.Random) -> Killed:
    """``kills`` of a simulation of ``workload``, each in a folder of its own."""
    found = Killed()
    took_s = _took_s(_simulate(workload, folder / "whole"))
    truth = dict(_runs(folder / "whole"))
    while found.kills < kills:
        place = folder / str(found.kills)
        begun = place if rng.random() < FROM_BEGUN else None
        if not _killed(_simulate(workload, place), rng.uniform(0, took_s), begun):
            found.kills, found.late = found.kills + 1, found.late + 1
        else:
            _opened(place, found)
        for name, run in _runs(place):
            if not run.caveats:
                assert run.requests == truth[name].requests, f"{place / name} differs from the run that nobody killed"
                found.rows += len(run.requests)
    return found


def _bench(server: RunningMock, place: Path) -> list[str]:
    begun = (place / "begun.json").exists()
    return ["bench", "--resume", str(place)] if begun else ["bench", server.url, *BENCH, "--run-dir", str(place)]


def _simulate(workload: Path, place: Path) -> list[str]:
    return ["simulate", *SIMULATE, "--workload", str(workload), "--run-dir", str(place)]


def _killed(arguments: list[str], after_s: float | None, begun: Path | None = None) -> bool:
    """Run a command; whether it was killed before its end, ``after_s`` from its start, or from when ``begun`` is there.

    Without a time it must end well.
    """
    with subprocess.Popen(
        [sys.executable, "-m", "servewise", *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as running:
        try:
            while begun is not None and not begun.exists() and running.poll() is None:
                time.sleep(LOOK_S)
            _, words = running.communicate(timeout=after_s)
        except subprocess.TimeoutExpired:
            running.send_signal(signal.SIGKILL)
            _, words = running.communicate()
    assert running.returncode in (0, -signal.SIGKILL), words
    return running.returncode != 0


def _took_s(arguments: list[str]) -> float:
    """How long it takes, left alone [s]."""
    began = time.monotonic()
    assert not _killed(arguments, None)
    return time.monotonic() - began


def _opened(place: Path, found: Killed) -> None:
    """``report`` opens what is there, and says so where it is not all."""
    found.kills += 1
    if not place.exists():
        found.before += 1
        return
    result = CliRunner().invoke(servewise, ["report", str(place), "--json"])
    assert result.exit_code == 0, result.stderr
    codes = {each["code"] for each in json.loads(result.stdout)["caveats"]}
    assert "damaged-journal" not in codes, f"{place} is damaged"
    if _is_whole(place):
        found.whole += 1
    else:
        assert "partial-run" in codes, f"{place} is not marked partial"
        found.partial += 1


def _is_whole(place: Path) -> bool:
    """Whether every run that was planned is there, whole; a folder of simulations drops its plan in the end."""
    begun = read_begun(place)
    runs = dict(_runs(place))
    ended = {name for name, run in runs.items() if not any(each.code == "partial-run" for each in run.caveats)}
    return len(ended) == len(runs) if begun is None or begun.runs is None else ended >= set(begun.runs)


def _hold_against_log(server: RunningMock, place: Path) -> int:
    """Every completed row is a request that the server served whole; those it served are rows, but for a few."""
    served = Counter((each.prompt_tokens, each.tokens) for each in server.log() if each.ended == "whole")
    rows: Counter[tuple[int, int]] = Counter()
    runs = list(_runs(place, besides_cut=False)) if place.exists() else []
    for _, run in runs:
        requests = run.requests
        for row in range(len(requests)):
            if requests.status[row] == COMPLETED:
                rows[requests.prompt_tokens[row], requests.output_tokens[row]] += 1
    strangers = rows - served
    assert not strangers, f"rows that the server never served: {strangers}"
    return rows.total()


def _end_of_bench(place: Path, found: Killed, through: int) -> None:
    """All runs are whole, with all their requests, and the answer says that there was a gap."""
    answer = json.loads((place / "bench.json").read_text())
    runs = dict(_runs(place))
    assert len(runs) == len(STREAMS) * REPEATS, f"{place} holds {sorted(runs)}"
    assert all(len(run.requests) == REQUESTS and not run.caveats for run in runs.values()), f"{place} is not whole"
    assert [row["requests"] for row in answer["result"]["rows"]] == [REPEATS * REQUESTS] * len(STREAMS)
    codes = {each["code"] for each in answer["caveats"]}
    assert "partial-run" not in codes, f"{place} came to its end"
    found.ended += 1
    found.by_kills[through] += 1


def _runs(place: Path, *, besides_cut: bool = True) -> Iterator[tuple[str, RunRecord]]:
    for header in sorted(place.rglob("run.json")):
        name = header.parent.relative_to(place)
        if any(part.startswith(".") for part in name.parts) or (besides_cut and CUT in name.parts):
            continue
        yield name.as_posix(), read_run(header.parent)


def workload(folder: Path, requests: int = 3000) -> Path:
    """A workload whose simulation takes a moment."""
    path = folder / "workload.toml"
    prompts = '[prompt_tokens]\nkind = "lognormal"\nmedian = 300\nsigma = 1.0\n'
    answers = '[output_tokens]\nkind = "fixed"\ntokens = 200\n'
    path.write_text(f'requests = {requests}\n[arrivals]\nkind = "poisson"\nrate_per_s = 2.0\n{prompts}{answers}')
    return path


def main() -> None:
    """Both, as often as asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with running_mock(PLAN) as server:
            print("bench:", kill_bench(server, folder / "bench", asked.kills, random.Random(asked.seed)))
        print("simulate:", kill_simulate(workload(folder), folder / "sim", asked.kills, random.Random(asked.seed)))


if __name__ == "__main__":
    main()
