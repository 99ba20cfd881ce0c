"""A directory that is there with its first files in it, or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from servewise.atomic import OLD_S, PART, is_part, locked, make_folder, replace_whole, settle, sweep, umask
from servewise.errors import InputError
from servewise.records.claim import Claim

FULL = (errno.ENOSPC, errno.EDQUOT)


def placed(directory: Path, files: Mapping[str, bytes]) -> Claim:
    """Make ``directory`` with ``files`` in it, and claim it. It must not exist, or be empty.

    A new one is made beside its place and moved there; one that is there already gets the files one by one, in their
    order. Raises InputError where it is occupied or cannot be written; nothing is left behind then.
    """
    refuse_occupied(directory)
    try:
        make_folder(directory.parent)
        return _filled(directory, files) if directory.exists() else _moved(directory, files)
    except OSError as error:
        refuse_occupied(directory)  # another was quicker
        raise unwritable(directory, error) from error


def refuse_occupied(directory: Path) -> None:
    """InputError where ``directory`` holds something (but what a killed program was writing), or is none."""
    try:
        occupied = directory.exists() and (not directory.is_dir() or not all(map(is_part, os.listdir(directory))))
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror or error})", where=str(directory)) from error
    if occupied:
        raise InputError("is there already and not empty", where=str(directory), hint="name a new run directory")


def unwritable(directory: Path, error: OSError, hint: str | None = None) -> InputError:
    """The one line for a directory that the system does not let us write: why, and what helps or what there is."""
    cure = "make room there, or name another place for the run" if error.errno in FULL else "another place for the run"
    return InputError(f"the run cannot be written ({error.strerror or error})", where=str(directory), hint=hint or cure)


def _filled(directory: Path, files: Mapping[str, bytes]) -> Claim:
    claim = Claim(directory)
    try:
        refuse_occupied(directory)
        sweep(directory)
        for name, data in files.items():
            replace_whole(directory / name, data)
    except BaseException:
        for name in files:
            (directory / name).unlink(missing_ok=True)
        claim.release()
        raise
    return claim


def _moved(directory: Path, files: Mapping[str, bytes]) -> Claim:
    _sweep_folders(directory)
    part = Path(tempfile.mkdtemp(dir=directory.parent, prefix=f".{directory.name[:40]}.", suffix=PART))
    claim = None
    try:
        claim = Claim(part)
        part.chmod(0o777 & ~umask())
        for name, data in files.items():
            replace_whole(part / name, data)
        part.replace(directory)
        settle(directory.parent)
    except BaseException:
        if claim is not None:
            claim.release()
        raise
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return claim


def _sweep_folders(directory: Path) -> None:
    """Remove what killed programs had begun to make of ``directory``."""
    with contextlib.suppress(OSError):
        for path in directory.parent.glob(".*" + PART):
            named = path.name.startswith(f".{directory.name[:40]}.") and path.is_dir() and not path.is_symlink()
            if named and time.time() - path.stat().st_mtime > OLD_S:
                _remove_dead(path)


def _remove_dead(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        if locked(handle):
            shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(handle)
