"""The folder of a measurement: claimed before its first request, and gone on with where it was cut off.

Whole runs are kept and not sent again. A run that was cut off is measured again whole, from its warm-up on: a server
that was idle, or began anew, in the middle of a run is not in the state that its window stands for, and what is before
the gap and after it are no two halves of one run. The rows of its first part stay in ``cut/``, and in no figure.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from servewise.answer import Answer
from servewise.ask.bench_begun import HINT, begun_of, line_of, sources_of
from servewise.ask.bench_options import Asked
from servewise.atomic import PART, replace_whole, settle, settle_all, sweep
from servewise.caveats import Caveat
from servewise.conditions import Conditions
from servewise.errors import InputError
from servewise.measure.bench.again import kept_whole
from servewise.measure.bench.client_file import CLIENT
from servewise.measure.bench.condition import Condition
from servewise.measure.bench.measured import Measured
from servewise.records.begun import CUT, NAME, Begun
from servewise.records.claim import Claim
from servewise.records.origin import Origin
from servewise.records.placing import placed, unwritable
from servewise.records.run_directory import HEADER, PARTIAL, REQUESTS, conditions_from
from servewise.units import format_seconds

ANSWER = "bench.json"
SUM = "answer_sha256"  # of that file, in what was asked
RUN_FILES = (HEADER, PARTIAL, REQUESTS, CLIENT)


class Keeping:
    """The folder of ``wanted``; ``begun`` is what was begun in it before, None for a new one."""

    def __init__(self, wanted: Asked, folder: Path, begun: Begun | None, command: str) -> None:
        self.wanted, self.folder = wanted, folder
        line = command if begun is None else line_of(begun)
        self.origin = Origin(command=line, sources=sources_of(wanted.options))
        self._before, self._begun = begun, begun
        self._claim: Claim | None = None
        self._kept: list[str] = []

    def claim(self, conditions: Conditions) -> None:
        """Make the folder, or take over the one that is there; InputError where it cannot be used."""
        if self._before is not None:
            try:
                self._claim = Claim(self.folder)
            except OSError as error:
                raise unwritable(self.folder, error) from error
            sweep(self.folder, old_s=0.0)
            return
        self._begun = begun_of(self.wanted, conditions, self._planned(), self.origin.command)
        self._claim = placed(self.folder, {NAME: self._begun.to_bytes()})

    def met(self, engine: str | None, conditions: Conditions) -> None:
        """The server is there: write down whose it is. InputError where it is another than before."""
        assert self._begun is not None, "the folder was claimed"
        asked = dict(self._begun.asked)
        known = asked["engine"]
        if known is not None and engine != known:
            what = f"the server now says that it is {engine}; the runs before are of {known}"
            raise InputError(what, where=str(self.folder), hint=HINT)
        asked["engine"] = engine
        if self._before is not None:
            asked["goes"] = [*asked["goes"], {"began_unix_s": round(time.time(), 3), "after_s": self._idle_s()}]
        self._write(replace(self._begun, asked=asked, conditions=conditions))
        with suppress(OSError):
            (self.folder / ANSWER).unlink(missing_ok=True)  # of the part before

    def release(self) -> None:
        """Others may write. A new folder in which nothing was measured goes."""
        held = (self.folder / HEADER).exists() or (self.folder / ANSWER).exists()
        if self._before is None and self._claim is not None and not held:
            with suppress(OSError):
                if [each.name for each in self.folder.iterdir()] == [NAME]:
                    shutil.rmtree(self.folder)
        if self._claim is not None:
            self._claim.release()
            self._claim = None

    def run(self, condition: Condition, repeat: int) -> Measured | None:
        """The run as it was measured before; None where it is to be measured: what was cut off is set aside."""
        if self._before is None:
            return None
        directory = self.directory(condition, repeat)
        if not (directory / HEADER).exists():
            self._clear(directory)
            return None
        found = kept_whole(directory, condition, repeat, self.wanted.slo)
        if found is None:
            self._set_aside(directory)
        else:
            self._kept.append(directory.name)
        return found

    def directory(self, condition: Condition, repeat: int) -> Path:
        """Where a run is kept: a folder in the folder, or where it is the only one, the folder itself."""
        if not self.wanted.several:
            return self.folder
        return self.folder / (f"{condition.name}-{repeat + 1}" if self._repeated else condition.name)

    def caveats(self) -> tuple[Caveat, ...]:
        """That there is a gap in the measurement."""
        assert self._begun is not None, "the folder was claimed"
        again, goes = self._again(), self._begun.asked["goes"]
        if not goes or not (again or self._kept):
            return ()
        gaps = ", ".join(format_seconds(each["after_s"]) for each in goes)
        message = f"the measurement was cut off and gone on with, after {gaps}: repeats are of before and after"
        if again:
            where = f"measured again whole (what came before is in {CUT}/, and in no figure)"
            message += f"; {', '.join(again)} {'was' if len(again) == 1 else 'were'} {where}"
        if again and self.wanted.cache == "as-is":
            message += "; the server had seen the texts of the first part"
        return (Caveat("resumed", message, "compare the repeats, or measure in one go"),)

    def end(self, answer: Answer, ended: str) -> None:
        """Keep the answer beside the runs."""
        assert self._begun is not None, "the folder was claimed"
        data = (answer.dumps() + "\n").encode()
        try:
            replace_whole(self.folder / ANSWER, data)
        except OSError as error:
            what = f"the answer cannot be written ({error.strerror or error})"
            raise InputError(what, where=str(self.folder), hint="the runs in it are whole") from error
        if ended == "whole":
            asked = dict(self._begun.asked) | {SUM: hashlib.sha256(data).hexdigest()}
            replace(self._begun, asked=asked).end(self.folder)

    @property
    def _repeated(self) -> bool:
        return self.wanted.options.repeats > 1 or self.wanted.options.ci is not None

    def _planned(self) -> tuple[str, ...] | None:
        wanted = self.wanted
        if wanted.search is not None or wanted.options.ci is not None:
            return None
        runs = [(each, repeat) for each in wanted.conditions for repeat in range(wanted.options.repeats)]
        return tuple(dict.fromkeys(self.directory(*each).name for each in runs)) if wanted.several else ("",)

    def _write(self, begun: Begun) -> None:
        self._begun = begun
        begun.write(self.folder)

    def _idle_s(self) -> float:
        """Since when nothing was written here."""
        last = max(_written_s(each) for each in (self.folder, *_files(self.folder)))
        return round(max(time.time() - last, 0.0), 3)

    def _set_aside(self, directory: Path) -> None:
        """Keep what was cut off in ``cut``."""
        name = directory.name if self.wanted.several else "run"
        cut = self.folder / CUT
        try:
            cut.mkdir(exist_ok=True)
            settle(self.folder)
            place = next(each for k in range(1, 10_000) if not (each := cut / f"{name}-{k}").exists())
            if self.wanted.several:
                directory.replace(place)
            else:
                _copied(directory, place)
            settle(cut)  # before the rows go from where they were
            self._clear(directory)
        except OSError as error:
            raise unwritable(self.folder, error) from error

    def _again(self) -> list[str]:
        """The runs that were set aside and measured again."""
        with suppress(OSError):
            return sorted({each.name.rpartition("-")[0] for each in (self.folder / CUT).iterdir() if _is_shown(each)})
        return []

    def _clear(self, directory: Path) -> None:
        """Of a run that has the folder itself, remove what is left of a first part that was set aside."""
        if not self.wanted.several:
            for name in RUN_FILES:
                (directory / name).unlink(missing_ok=True)


def answered(folder: Path, begun: Begun) -> Answer | None:
    """The answer that was kept with a measurement that is whole; None where it is not as it was written."""
    path = folder / ANSWER
    if not begun.whole or not path.is_file():
        return None
    try:
        data = path.read_bytes()
        if hashlib.sha256(data).hexdigest() != begun.asked.get(SUM):
            return None
        found: dict[str, Any] = json.loads(data)
        caveats = tuple(Caveat(each["code"], each["message"], each["cure"]) for each in found["caveats"])
        return Answer("bench", conditions_from(found["conditions"], str(path)), found["result"], caveats)
    except (OSError, ValueError, RecursionError, KeyError, TypeError, InputError):
        return None


def _is_shown(path: Path) -> bool:
    return not path.name.startswith(".")


def _copied(directory: Path, place: Path) -> None:
    part = place.with_name(f".{place.name}{PART}")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    for name in RUN_FILES:
        if (directory / name).exists():
            shutil.copy2(directory / name, part / name)
    settle_all(part)
    part.replace(place)


def _files(folder: Path) -> Sequence[Path]:
    return [each for each in folder.rglob("*") if each.is_file()]


def _written_s(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
