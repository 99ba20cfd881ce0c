"""A checkpoint's files lie in its folder: a name or a link that leads elsewhere is refused.

Hugging Face's cache is made of links, from ``models--ORG--NAME/snapshots/REVISION`` into ``models--ORG--NAME/blobs``;
those stay within the repository's own folder and are followed.
"""

from __future__ import annotations

from pathlib import Path

from servewise.errors import InputError

HUB_FOLDER = "models--"


def confined(folder: Path, name: str) -> Path:
    """``folder / name``; raises InputError where it is, or leads, outside of ``folder`` (or of its hub repository)."""
    path = folder / name
    try:
        real, home = path.resolve(), folder.resolve()
    except (OSError, RuntimeError):  # a link to itself
        raise InputError("is a link that leads nowhere", where=str(path)) from None
    if not any(real.is_relative_to(each) for each in _homes(home)):
        hint = "put the file itself into the folder"
        raise InputError("leads out of the checkpoint's folder, so it is not read", where=str(path), hint=hint)
    return path


def _homes(folder: Path) -> tuple[Path, ...]:
    repository = folder.parent.parent
    if folder.parent.name == "snapshots" and repository.name.startswith(HUB_FOLDER):
        return (folder, repository / "blobs")
    return (folder,)
