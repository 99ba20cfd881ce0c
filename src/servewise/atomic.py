"""Files written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def replace_whole(target: Path, content: bytes) -> None:
    """Put ``content`` at ``target`` in one move; an interrupted or failed write leaves what was there.

    ``target`` must be no device or pipe: the move would take its place. Raises OSError as the file system does.
    """
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:40]}.", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
