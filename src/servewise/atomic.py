"""Files written whole or not at all.

Written beside their place, brought to the disk, moved over it: a process that is killed leaves the old file or the new
one, and so does a power cut. What a killed process left half written (``.NAME.xxxxxxxx.part``) is never read, and goes
when the same file is written the next time.
"""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: no locks, and nothing is swept
    fcntl = None  # type: ignore[assignment]

PART = ".part"
OLD_S = 60.0  # a part file is made and locked in far less
NOT_HERE = (errno.EINVAL, errno.ENOTSUP, errno.EACCES, errno.EPERM, errno.EISDIR)  # a folder that cannot be flushed


def replace_whole(target: Path, content: bytes) -> None:
    """Put ``content`` at ``target`` in one move; an interrupted or failed write leaves what was there.

    It is on the disk when this returns. ``target`` must be no device or pipe: the move would take its place. Raises
    OSError as the file system does.
    """
    sweep(target.parent, _prefix(target))
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=_prefix(target), suffix=PART)
    try:
        with os.fdopen(handle, "wb") as file:
            locked(handle)  # so that nobody sweeps it away, however long the disk takes
            file.write(content)
            file.flush()
            os.chmod(name, 0o666 & ~umask())
            os.fsync(handle)
        os.replace(name, target)
        settle(target.parent)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def make_folder(folder: Path) -> None:
    """Make ``folder`` and what it lies in, where they are not there; after a power cut they are."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for each in missing:
        settle(each.parent)


def settle(folder: Path) -> None:
    """Bring to the disk which names ``folder`` holds, where its file system can."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except PermissionError:  # it may be written to but not listed
        return
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in NOT_HERE:
            raise
    finally:
        os.close(handle)


def settle_all(place: Path) -> None:
    """Bring the file, or all files in the folder ``place``, to the disk with their names; its own name is its folder's.

    Raises OSError as the file system does.
    """
    if not place.is_dir():
        with place.open("rb") as file:
            os.fsync(file.fileno())
        return
    for each in place.iterdir():
        settle_all(each)
    settle(place)


def locked(handle: int) -> bool:
    """Lock the open file or folder ``handle`` for its process; False where another holds it.

    The lock goes with the process, however it ends. Where the file system has no locks there is none to be held.
    """
    if fcntl is None:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in (errno.EWOULDBLOCK, errno.EACCES)
    return True


def is_part(name: str) -> bool:
    """Whether a file of that name is one that was being written."""
    return name.startswith(".") and name.endswith(PART)


def sweep(folder: Path, prefix: str = ".", *, old_s: float = OLD_S) -> None:
    """Remove the part files in ``folder`` whose writers are dead; what cannot be removed stays.

    Whoever knows that no other program writes in ``folder`` takes those of any age.
    """
    if fcntl is None:
        return
    with contextlib.suppress(OSError):
        for path in list(_strays(folder, prefix, old_s)):
            with contextlib.suppress(OSError), path.open("rb") as file:
                if locked(file.fileno()):
                    path.unlink()


def _strays(folder: Path, prefix: str, old_s: float) -> Iterator[Path]:
    with os.scandir(folder) as entries:
        for entry in entries:
            named = entry.name.startswith(prefix) and is_part(entry.name)
            if named and entry.is_file(follow_symlinks=False) and time.time() - entry.stat().st_mtime >= old_s:
                yield Path(entry.path)


def _prefix(target: Path) -> str:
    return f".{target.name[:40]}."


def umask() -> int:
    """Which rights new files do not get."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
