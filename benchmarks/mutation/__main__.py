"""`python -m benchmarks.mutation`: a sample of mutants of batching and metrics; `--full`: all of them.

Needs `pip install -e '.[mutation,test]'`. Nothing is written but results/mutation.json, and that with `--record` alone.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest

from benchmarks.mutation.equivalent import reason_of
from benchmarks.mutation.mutants import Mutant, MutatedFile
from benchmarks.mutation.runner import INVALID, SURVIVED, Job, Reach, Session
from benchmarks.mutation.sample import drawn
from benchmarks.mutation.score import score
from benchmarks.record import RESULTS, save, table

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "servewise"
ROOMS = ("batching", "metrics")
BAR = 0.8
# What tests the two rooms directly and is fast. The rest of the suite would find more; it is not waited for.
TESTS = (
    "tests/batching",
    "tests/metrics",
    "tests/properties/machines",
    "tests/properties/test_batching_invariants.py",
    "tests/properties/test_phases.py",
    "tests/properties/test_pipeline.py",
    "tests/properties/test_prefix_cache.py",
    "tests/properties/test_scheduling_order.py",
    "tests/properties/test_speculation.py",
    "tests/properties/test_step_skipping.py",
    "tests/simulate/pipelined",
)
OPTIONS = ("-q", "-n0", "-W", "ignore::pytest.PytestAssertRewriteWarning")  # Hypothesis is here before pytest


@dataclass(frozen=True)
class Picked:
    """A mutant of ``room`` that is run."""

    room: str
    file: MutatedFile
    mutant: Mutant


class Run:
    """Mutants chosen, run one by one, and counted."""

    def __init__(self, asked: argparse.Namespace) -> None:
        self._asked = asked
        self._begun = time.monotonic()
        self.total: dict[str, int] = {}
        self.picked: list[Picked] = []
        self.ends: dict[str, list[tuple[Picked, str]]] = {room: [] for room in asked.rooms}
        for room in asked.rooms:
            self._pick(room)

    def _pick(self, room: str) -> None:
        home = SOURCE / room
        files = [MutatedFile(home, str(path.relative_to(home))) for path in sorted(home.rglob("*.py"))]
        mutants = {each.path: [Picked(room, each, mutant) for mutant in each.mutants] for each in files if each.mutants}
        self.total[room] = sum(map(len, mutants.values()))
        wanted = [each for each in drawn(mutants, self._asked.size, self._asked.seed) if self._wanted(each)]
        Random(self._asked.seed).shuffle(wanted)  # so that a run cut short is a sample too
        self.picked += wanted

    def _wanted(self, each: Picked) -> bool:
        only = self._asked.only
        return only is None or f"{each.room}/{each.mutant.key}" in only

    def __call__(self, session: Session) -> None:
        """Time the tests, then run the mutants."""
        reach = self._reach(session)
        say(f"{sum(reach.seconds.values()):.0f} s of tests; {len(self.picked)} mutants")
        for at, each in enumerate(self.picked):
            end = self._end(session, reach, each)
            self.ends[each.room].append((each, end))
            survived = sum(end == SURVIVED for found in self.ends.values() for _, end in found)
            say(f"{at + 1}/{len(self.picked)} {end:9} {survived} survived, {each.room}/{each.mutant.key}")

    def _reach(self, session: Session) -> Reach:
        say(f"what each of {len(session.items)} tests reaches, and how fast")
        kept = self._asked.reach and Path(self._asked.reach)
        reach = session.reach(Reach.read(kept) if kept and kept.exists() else None)
        if kept:
            reach.save(kept)
        return reach

    def _end(self, session: Session, reach: Reach, each: Picked) -> str:
        if not each.file.compiles(each.mutant):
            return INVALID
        path = str(SOURCE / each.room / each.file.path)
        return session.end_of(Job(path, each.file.source, each.file.code(each.mutant)), reach)

    def result(self) -> dict[str, Any]:
        """By room: the score, each file's, and who survived."""
        return {room: self._room(room) for room in self._asked.rooms}

    def _room(self, room: str) -> dict[str, Any]:
        ends = self.ends[room]
        survivors = [each for each, end in ends if end == SURVIVED]
        told = [self._told(each) for each in survivors]
        files = {path: score(end for each, end in ends if each.file.path == path) for path in self._paths(room)}
        return {
            "mutants": self.total[room],
            "command": f"python -m benchmarks.mutation --room {room} {self._asked.extent}",
            "seconds": round(time.monotonic() - self._begun),
            "invalid": sum(end == INVALID for _, end in ends),
            **score(end for _, end in ends),
            "judged_equivalent": sum("equivalent" in row for row in told),
            "files": files,
            "survivors": told,
        }

    @staticmethod
    def _told(each: Picked) -> dict[str, str]:
        before, after = each.file.change(each.mutant)
        row = {"mutant": each.mutant.key, "before": before, "after": after}
        reason = reason_of(each.room, each.mutant, (before, after))
        return row if reason is None else row | {"equivalent": reason}

    def _paths(self, room: str) -> list[str]:
        return list(dict.fromkeys(each.file.path for each, _ in self.ends[room]))


def main() -> int:
    """Choose, run, count; the exit code is 1 where a room is below the bar, 2 where the tests fail unmutated."""
    asked = _parsed()
    run = Run(asked)
    pytest.main([*OPTIONS, f"--rootdir={ROOT}", *TESTS], plugins=[_session(run, asked.rooms)])
    rooms = run.result()
    header = ("room", "mutants", "n", "killed", "timed_out", "survived", "judged_equivalent", "score")
    table(header, [[room, *[row[name] for name in header[1:]]] for room, row in rooms.items()])
    if asked.out:
        Path(asked.out).write_text(json.dumps(rooms, indent=1))
    if asked.record:
        sys.argv[1:] = ["--record"]  # each room tells its own command
        save("mutation", {"bar": BAR, "tests": list(TESTS), "rooms": _recorded() | rooms})
    return int(any(row["score"] is None or row["score"] < BAR for row in rooms.values()))


def _recorded() -> dict[str, Any]:
    """The rooms of the result of record: one that is run alone replaces its own."""
    path = RESULTS / "mutation.json"
    found: dict[str, Any] = json.loads(path.read_text())["rooms"] if path.exists() else {}
    return found


def _session(run: Run, rooms: list[str]) -> Session:
    return Session(tuple(str(SOURCE / room) for room in rooms), run)


def _parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutation", description=__doc__)
    parser.add_argument("--sample", type=int, default=100, metavar="N", help="mutants of each room (default: 100)")
    parser.add_argument("--full", action="store_true", help="every mutant: hours")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--room", action="append", choices=ROOMS, dest="rooms", help="one room alone")
    parser.add_argument("--again", metavar="FILE", help="only those that survived in FILE, which --out wrote")
    parser.add_argument("--reach", metavar="FILE", help="where what tests reach is kept for a later run")
    parser.add_argument("--out", metavar="FILE", help="write the result there")
    parser.add_argument("--record", action="store_true", help="write results/mutation.json")
    asked = parser.parse_args()
    asked.rooms = asked.rooms or list(ROOMS)
    asked.extent = "--full" if asked.full else f"--sample {asked.sample} --seed {asked.seed}"
    asked.size = None if asked.full or asked.again else asked.sample
    asked.only = _survivors(Path(asked.again)) if asked.again else None
    return asked


def _survivors(path: Path) -> set[str]:
    rooms = json.loads(path.read_text())
    return {f"{room}/{each['mutant']}" for room, row in rooms.items() for each in row["survivors"]}


def say(text: str) -> None:
    """Progress, for people."""
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
