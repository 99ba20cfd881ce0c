"""The right to write a directory, which one program at a time has.

It is the kernel's lock on the directory itself: no file of it is left behind, and it ends with the process that holds
it, however that ends. File systems without such locks (some of NFS) give it to everyone.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from servewise.atomic import locked
from servewise.errors import InputError

TRIES, BETWEEN_S = 10, 0.02  # whoever only asks (``under_way``) holds it for a moment


class Claim:
    """Held from ``Claim(directory)`` to ``release``, or to the end of the process.

    Raises InputError where another program holds it; OSError where ``directory`` cannot be opened.
    """

    def __init__(self, directory: Path) -> None:
        self._handle: int | None = os.open(directory, os.O_RDONLY)
        for left in reversed(range(TRIES)):
            if locked(self._handle):
                return
            time.sleep(BETWEEN_S if left else 0)
        self.release()
        hint = "wait for it to end, or name another run directory"
        raise InputError("is being written by another program", where=str(directory), hint=hint)

    def release(self) -> None:
        """Let others write."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


def under_way(directory: Path) -> bool:
    """Whether a program is writing ``directory`` now."""
    try:
        handle = os.open(directory, os.O_RDONLY)
    except OSError:
        return False
    try:
        return not locked(handle)
    finally:
        os.close(handle)
