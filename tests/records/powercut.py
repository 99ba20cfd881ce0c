"""A power cut between any two calls to the disk: every state that the disk may be found in afterwards.

The model is that of "All File Systems Are Not Created Equal" (Pillai et al., OSDI 2014), at its weakest but for one
thing, and weaker than ext4, XFS and btrfs are by default:

- What was written to a file since its last fsync is there, half there, zeros of the same length, or not at all. What
  was there at the fsync stays. That the file is flushed says nothing of its name.
- Names made, moved and removed since the last fsync of their directory are there up to any point, in their order, in
  each directory whatever the others hold. A rename is one step: the old file or the new one.
- Directories never lose what was there at their fsync. Disks that lie about a flush are not in it.

Calls are recorded by ``faults.Disk``: at each the whole tree is noted, so that a change by a call that nobody counts
is seen at the next.
"""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest
from tests.records.faults import Disk

MEMORY = Path("/dev/shm")  # tmpfs: no inode's number comes twice
MOST = 20_000
ALL = -1
Tree = dict[str, "bytes | Tree"]
Names = dict[str, int]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Moment:
    """The tree as the system sees it: names by directory, contents by file, each by its inode."""

    names: dict[int, Names] = field(default_factory=dict)
    contents: dict[int, bytes] = field(default_factory=dict)
    flushed: int | None = None  # the inode that was just brought to the disk, or ALL


class Recording(Disk):
    """Notes the tree under ``root`` before and after each call, and what was promised when."""

    def __init__(self, patch: pytest.MonkeyPatch, root: Path) -> None:
        self.root = root
        self.moments = [seen(root, ALL)]
        self.promises: list[tuple[int, Any]] = []
        super().__init__(patch)

    def count(self, name: str) -> None:
        """Before a call."""
        super().count(name)
        self.moments.append(seen(self.root))

    def done(self, name: str, *given: Any) -> None:
        """After it."""
        self.moments.append(seen(self.root, os.fstat(given[0]).st_ino if name == "fsync" else None))

    def begin(self) -> None:
        """What there is was there long ago."""
        self.moments, self.promises = [seen(self.root, ALL)], []

    def promise(self, what: object) -> None:
        """From now on a cut leaves ``what``."""
        self.moments.append(seen(self.root))
        self.promises.append((len(self.moments) - 1, what))

    def cuts(self) -> Iterator[tuple[Tree, list[Any]]]:
        """Each tree that a cut may leave, with all that had been promised by the last moment that may leave it."""
        latest: dict[str, tuple[Tree, int]] = {}
        for at in range(len(self.moments)):
            for tree in _left(self.moments[: at + 1]):
                latest[repr(tree)] = tree, at
                assert len(latest) < MOST, "too many states: make the scenario smaller"
        for tree, at in latest.values():
            yield tree, [what for since, what in self.promises if since <= at]


@contextmanager
def recorded() -> Iterator[Recording]:
    """A folder to write in, every call noted; the calls after it are not."""
    if not MEMORY.is_dir():
        pytest.skip("needs /dev/shm, where no inode's number comes twice")
    root = Path(tempfile.mkdtemp(prefix="servewise-cut-", dir=MEMORY))
    try:
        with pytest.MonkeyPatch.context() as patch:
            yield Recording(patch, root)
    finally:
        shutil.rmtree(root)


def each_cut(recording: Recording, look: Callable[[Path, list[Any]], None]) -> int:
    """``look`` at each state as a folder of its own, with the promises that bind it; how many states there were."""
    cuts = list(recording.cuts())
    for tree, promised in cuts:
        place = Path(tempfile.mkdtemp(prefix="servewise-left-", dir=MEMORY))
        try:
            laid(place, tree)
            look(place, promised)
        finally:
            shutil.rmtree(place)
    return len(cuts)


def laid(place: Path, tree: Tree) -> None:
    """``tree`` as files."""
    for name, inner in tree.items():
        if isinstance(inner, bytes):
            (place / name).write_bytes(inner)
        else:
            (place / name).mkdir()
            laid(place / name, inner)


def seen(root: Path, flushed: int | None = None) -> Moment:
    """The tree now."""
    moment = Moment(flushed=flushed)
    folders = [root]
    for folder in folders:
        names: Names = {}
        for entry in os.scandir(folder):
            names[entry.name] = entry.inode()
            if entry.is_dir(follow_symlinks=False):
                folders.append(Path(entry.path))
            else:
                moment.contents[entry.inode()] = Path(entry.path).read_bytes()
        moment.names[folder.stat().st_ino] = names
    return moment


def _left(moments: list[Moment]) -> Iterator[Tree]:
    """What a cut right after the last of ``moments`` may leave."""
    root = next(iter(moments[0].names))
    yield from _trees(root, moments)


def _trees(folder: int, moments: list[Moment]) -> Iterator[Tree]:
    for names in _versions(folder, moments):
        children = [list(_children(inode, moments)) for inode in names.values()]
        for chosen in itertools.product(*children):
            yield dict(zip(names, chosen, strict=True))


def _children(inode: int, moments: list[Moment]) -> Iterator[bytes | Tree]:
    if any(inode in each.names for each in moments):
        yield from _trees(inode, moments)
    else:
        yield from _contents(inode, moments)


def _versions(folder: int, moments: list[Moment]) -> list[Names]:
    """The names that it may hold: from its last flush on, each that it held; before a first flush, none too."""
    flush = _last_flush(folder, moments, [folder in each.names for each in moments])
    since: list[Names] = [each.names[folder] for each in moments[max(flush, 0) :] if folder in each.names]
    return _distinct(since if flush >= 0 else [{}, *since])


def _contents(inode: int, moments: list[Moment]) -> list[bytes]:
    """What it may hold: what was there at its last flush, and what came since wholly, half, as zeros, or not.

    Of its pages any may come first: so zeros to the half, and what was written from there on.
    """
    flush = _last_flush(inode, moments, [inode in each.contents for each in moments])
    kept = moments[flush].contents[inode] if flush >= 0 else b""
    live = next(each.contents[inode] for each in reversed(moments) if inode in each.contents)
    if not live.startswith(kept):
        return [kept, live]
    new = live[len(kept) :]
    half = len(new) // 2
    return _distinct(kept + each for each in (b"", new, new[:half], bytes(len(new)), bytes(half) + new[half:]))


def _last_flush(inode: int, moments: list[Moment], there: list[bool]) -> int:
    """When ``inode`` was flushed the last time, while it had a name; -1: never."""
    return max((at for at, each in enumerate(moments) if each.flushed in (inode, ALL) and there[at]), default=-1)


def _distinct(values: Iterable[T]) -> list[T]:
    found: list[T] = []
    for each in values:
        if each not in found:
            found.append(each)
    return found
