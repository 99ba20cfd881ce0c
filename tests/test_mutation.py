"""The mutation run: which mutants there are, which are drawn, how their share is told, and that a mutant is noticed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.mutation.mutants import MutatedFile
from benchmarks.mutation.runner import KILLED, SURVIVED, TIMED_OUT
from benchmarks.mutation.sample import drawn
from benchmarks.mutation.score import score, wilson

SOURCE = '''"""Words."""

LIMIT = 5


class Held:
    """More words."""

    share: float = 0.5

    @property
    def twice(self) -> int:
        """Even more."""
        return LIMIT * 2


def below(value: int, limit: int = LIMIT) -> bool:
    """Whether it is."""
    if value < 0:
        raise ValueError("no such value")
    return value < limit
'''


@pytest.fixture
def mutated(tmp_path: Path) -> MutatedFile:
    """A file with one function and one property."""
    (tmp_path / "held.py").write_text(SOURCE)
    return MutatedFile(tmp_path, "held.py")


def test_mutants_are_of_what_runs_in_functions(mutated: MutatedFile) -> None:
    """The property is changed too; constants, defaults, annotations, docstrings and words of errors are not."""
    changes = {mutated.change(each) for each in mutated.mutants}

    assert ("return value < limit", "return value <= limit") in changes
    assert ("return LIMIT * 2", "return LIMIT / 2") in changes
    assert {before for before, _ in changes} == {
        "return LIMIT * 2",
        "if value < 0:",
        'raise ValueError("no such value")',
        "return value < limit",
    }
    assert all("XX" not in after for _, after in changes)


def test_a_sample_gives_each_file_its_share() -> None:
    """Of 60, 30 and 10 mutants a sample of 20 takes 12, 6 and 2, none twice, the same from the same seed."""
    files = {name: [f"{name}{at}" for at in range(count)] for name, count in (("a", 60), ("b", 30), ("c", 10))}
    found = drawn(files, 20, seed=3)

    assert [sum(each.startswith(name) for each in found) for name in files] == [12, 6, 2]
    assert len(set(found)) == 20
    assert found == drawn(files, 20, seed=3) != drawn(files, 20, seed=4)
    assert drawn(files, None, seed=3) == [each for names in files.values() for each in names]


def test_the_interval_is_wilsons() -> None:
    """80 of 100: 0.711 to 0.867 (the score interval by hand); a time-out is noticed and counted apart."""
    found = score([KILLED] * 79 + [TIMED_OUT] + [SURVIVED] * 20 + ["invalid"])

    assert (found["n"], found["killed"], found["timed_out"], found["score"]) == (100, 79, 1, 0.8)
    assert wilson(80, 100) == pytest.approx((0.7112, 0.8666), abs=1e-4)


INNER = """
import held

def test_below():
    assert held.below(4) and not held.below(5)

def test_twice():
    assert held.Held().twice == 10
"""


def test_mutants_are_noticed_by_the_tests_that_reach_them(mutated: MutatedFile, tmp_path: Path) -> None:
    """A pytest session of its own: what the two tests tell apart is killed, what they do not survives."""
    (tmp_path / "test_held.py").write_text(INNER)
    (tmp_path / "run.py").write_text(f"""
import json, sys
sys.path[:0] = [{str(tmp_path)!r}, {str(Path(__file__).parents[1])!r}]
import pytest
from pathlib import Path
from benchmarks.mutation.mutants import MutatedFile
from benchmarks.mutation.runner import Job, Session
file = MutatedFile(Path({str(tmp_path)!r}), "held.py")
path = {str(tmp_path / "held.py")!r}
ends = {{}}
def work(session):
    reach = session.reach()
    for each in file.mutants:
        ends[" | ".join(file.change(each))] = session.end_of(Job(path, file.source, file.code(each)), reach)
options = ["-q", "-p", "no:xdist", "-p", "no:cacheprovider", "-c", "/dev/null", "--rootdir", {str(tmp_path)!r}]
pytest.main([*options, {str(tmp_path)!r}], plugins=[Session(({str(tmp_path)!r},), work)])
Path("ends.json").write_text(json.dumps(ends))
""")
    ran = subprocess.run([sys.executable, "run.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    ends = json.loads((tmp_path / "ends.json").read_text())

    assert ends["return value < limit | return value <= limit"] == KILLED
    assert ends["return LIMIT * 2 | return LIMIT / 2"] == KILLED
    assert ends["if value < 0: | if value <= 0:"] == SURVIVED
    assert ends["if value < 0: | if value < 1:"] == SURVIVED
