"""``begun.json``: what a folder of runs is to hold, written before the first of them.

So a folder whose program was killed says what is not in it, and a measurement can go on. It is replaced in one move
when all is there.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from servewise.atomic import replace_whole
from servewise.caveats import Caveat
from servewise.conditions import Conditions
from servewise.errors import InputError
from servewise.records.claim import Claim, under_way
from servewise.records.placing import placed, unwritable
from servewise.records.run_directory import CUT_OFF, MAX_HEADER_BYTES, conditions_from
from servewise.records.text import text_of

NAME = "begun.json"
CUT = "cut"  # the folder in it for runs that were cut off and made again: they are in no figure
SCHEMA = "servewise.begun/1"
HINT = "remove it to have what is there taken for all, or make the runs again"


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """What was begun: ``runs`` names the folders that are planned (None: it shows as it goes, in a search).

    A plan of one run has the empty name: the folder itself. ``asked`` is what the maker needs to go on, in plain JSON.
    ``whole``: all is there.
    """

    command: str
    conditions: Conditions
    runs: tuple[str, ...] | None
    asked: Mapping[str, Any] = field(default_factory=dict)
    whole: bool = False

    def to_bytes(self) -> bytes:
        """The file."""
        document = {
            "schema": SCHEMA,
            "command": self.command,
            "conditions": self.conditions.to_json(),
            "runs": None if self.runs is None else list(self.runs),
            "asked": dict(self.asked),
            "whole": self.whole,
        }
        return text_of(document)

    def place(self, folder: Path) -> Claim:
        """Make ``folder`` with it, or put it in one without: other runs may be there already. The folder is claimed."""
        if not folder.is_dir() or not os.listdir(folder):
            return placed(folder, {NAME: self.to_bytes()})
        try:
            claim = Claim(folder)
        except OSError as error:
            raise unwritable(folder, error) from error
        self.write(folder)
        return claim

    def write(self, folder: Path) -> None:
        """Put it in ``folder``, in place of the one that is there; InputError where that cannot be."""
        try:
            replace_whole(folder / NAME, self.to_bytes())
        except OSError as error:
            raise unwritable(folder, error, "the runs in it are kept") from error

    def end(self, folder: Path) -> None:
        """Mark it in ``folder``: all is there."""
        replace(self, whole=True).write(folder)

    def remove(self, folder: Path) -> None:
        """All is there, and there is nothing to go on with."""
        try:
            (folder / NAME).unlink(missing_ok=True)
        except OSError as error:
            raise unwritable(folder, error, "the runs in it are whole") from error

    def missing(self, folder: Path, ended: Sequence[str], cut: Sequence[str]) -> tuple[Caveat, ...]:
        """The caveat of what is not there, where the runs ``ended`` are whole and those of ``cut`` are not."""
        planned = None if self.runs is None else set(self.runs)
        whole, broken = (len([name for name in names if planned is None or name in planned]) for names in (ended, cut))
        if self.whole or (planned is not None and whole >= len(planned)):
            return ()
        goes_on = under_way(folder)
        state = "goes on" if goes_on else "was ended before its time"
        of = "" if self.runs is None else f" of {len(self.runs):,}"
        last = f", {broken:,} {'is under way' if goes_on else 'was cut off'}" * bool(broken)
        message = f"partial: what was begun here {state}: {whole:,}{of} runs are whole{last}"
        return (Caveat(CUT_OFF, message, "wait for its end" if goes_on else self._cure(folder)),)

    def _cure(self, folder: Path) -> str:
        if self.command == "servewise bench":
            return to_go_on(folder)
        return "run its command again in another folder: the seed gives the same runs"


def to_go_on(folder: Path | str) -> str:
    """What to do about a measurement in ``folder`` that was cut off."""
    return f"go on with it: servewise bench --resume {shlex.quote(str(folder))}"


def read_begun(folder: Path) -> Begun | None:
    """What ``folder`` was begun as; None where it says nothing. InputError where it cannot be read."""
    path = folder / NAME
    try:
        if not path.is_file():
            return None
        if path.stat().st_size > MAX_HEADER_BYTES:
            raise InputError("is over 16 MB", where=str(path), hint=HINT)
        found = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror or error})", where=str(path)) from error
    except (ValueError, RecursionError) as error:
        raise InputError("is no JSON", where=str(path), hint=HINT) from error
    return _begun(found, str(path))


def _begun(found: Any, where: str) -> Begun:
    if not isinstance(found, dict) or found.get("schema") != SCHEMA:
        raise InputError(f"has not the schema {SCHEMA!r}", where=where, hint=HINT)
    command, runs, asked, conditions = (found.get(name) for name in ("command", "runs", "asked", "conditions"))
    named = runs is None or (isinstance(runs, list) and all(isinstance(each, str) for each in runs))
    whole = isinstance(found.get("whole"), bool)
    if not (isinstance(command, str) and named and whole and isinstance(asked, dict) and isinstance(conditions, dict)):
        raise InputError("is not what a folder of runs begins with", where=where, hint=HINT)
    return Begun(
        command=command,
        conditions=conditions_from(conditions, where),
        runs=None if runs is None else tuple(runs),
        asked=asked,
        whole=found["whole"],
    )
