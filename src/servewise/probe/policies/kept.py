"""What was measured, kept in a folder, so that an interrupted probe goes on where it stopped."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from servewise.atomic import make_folder, replace_whole
from servewise.conditions import Conditions
from servewise.errors import InputError
from servewise.probe.policies.drive import Driven, TimedShape
from servewise.records.columns import StepColumns
from servewise.records.run_directory import RunRecord, read_run, write_run
from servewise.steptime.shape import StepShape

SCHEMA = "servewise.calibration/1"
MOST_BYTES = 2**28
AGAIN = "give another run directory, or the settings that it was begun with"


def kept_run(
    folder: Path | None,
    name: str,
    settings: Mapping[str, Any],
    conditions: Conditions,
    slots: int,
    run: Callable[[], Driven],
) -> Driven:
    """The run called ``name`` in ``folder``, read back where it is there, else made by ``run`` and kept.

    Raises InputError where the one that is there was made with other ``settings``.
    """
    if folder is None:
        return run()
    directory = folder / name
    if not (directory / "run.json").exists():
        driven = run()
        details = {"settings": dict(settings), "waited_share": driven.waited}
        record = RunRecord(
            kind="measured", conditions=replace(conditions), requests=driven.requests, steps=driven.steps, slots=slots,
            seed=settings.get("seed"), versions=_versions(), command="servewise probe policies", details=details,
        )  # fmt: skip
        write_run(directory, record)
        return driven
    record = read_run(directory)
    _check(record.details.get("settings"), settings, directory)
    waited = record.details.get("waited_share")
    return Driven(
        requests=record.requests,
        steps=record.steps if record.steps is not None else StepColumns(),
        shapes=(),
        waited=float(waited) if isinstance(waited, (int, float)) else None,
    )


def kept_shapes(
    folder: Path | None, name: str, settings: Mapping[str, Any], run: Callable[[], list[TimedShape]]
) -> list[TimedShape]:
    """The calibration called ``name``, likewise."""
    if folder is None:
        return run()
    path = folder / f"{name}.json"
    if not path.exists():
        shapes = run()
        rows = [[*each.shape, each.seconds] for each in shapes]
        document = {"schema": SCHEMA, "settings": dict(settings), "columns": [*StepShape._fields, "seconds"]}
        _write_whole(path, json.dumps(document | {"rows": rows}))
        return shapes
    document = _read(path)
    _check(document.get("settings"), settings, path)
    try:
        return [TimedShape(StepShape(*map(int, row[:-1])), float(row[-1])) for row in document["rows"]]
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise InputError("is a damaged calibration", where=str(path), hint="remove it") from error


def _check(found: object, settings: Mapping[str, Any], path: Path) -> None:
    wanted = json.loads(json.dumps(dict(settings)))
    if found != wanted:
        known = found if isinstance(found, dict) else {}
        off = next((key for key in {*wanted, *known} if wanted.get(key) != known.get(key)), "settings")
        what = f"was measured with {off} {known.get(off)!r}, not {wanted.get(off)!r}"
        raise InputError(what, where=str(path), hint=AGAIN)


def _read(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise InputError("is too large for a calibration", where=str(path), hint="remove it")
        document = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror or error})", where=str(path)) from error
    except (ValueError, RecursionError) as error:
        raise InputError("is a damaged calibration", where=str(path), hint="remove it") from error
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise InputError("is no calibration of this version", where=str(path), hint="remove it")
    return document


def _write_whole(path: Path, text: str) -> None:
    try:
        make_folder(path.parent)
        replace_whole(path, text.encode())
    except OSError as error:
        raise InputError(f"cannot be written ({error.strerror or error})", where=str(path)) from error


def _versions() -> dict[str, str]:
    import torch

    from servewise.version import __version__

    return {"servewise": __version__, "torch": str(torch.__version__)}
