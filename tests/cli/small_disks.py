"""File systems of our own, in a mount namespace that ends with us: small ones, and ones that become read-only.

Nothing outside sees them but by ``/proc/PID/root``, so no other program is in their way, nor they in its. Root may make
them; others where the kernel lets them have user namespaces.
"""

from __future__ import annotations

import functools
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

TMPFS = "mount -t tmpfs -o size={size}k none {place}"
EXT4 = "mount -o loop {image} {place}"
PATIENCE_S = 60


class Namespace:
    """A process that holds the namespace; commands join it."""

    def __init__(self, place: Path, mounting: str) -> None:
        place.mkdir(exist_ok=True)
        self.place = place
        script = f"{mounting} && echo there && exec cat"
        self._holder = subprocess.Popen(
            ["unshare", *_flags(), "sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._holder.stdout is not None
        self.is_there = self._holder.stdout.readline() == "there\n"

    @property
    def seen(self) -> Path:
        """The place as this process, which is outside, reaches it."""
        return Path(f"/proc/{self._holder.pid}/root{self.place}")

    def joined(self, *command: str) -> list[str]:
        """The command line that runs ``command`` in there."""
        user = [] if os.geteuid() == 0 else ["-U", "--preserve-credentials"]
        return ["nsenter", "-t", str(self._holder.pid), "-m", *user, "--", *command]

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """``command`` in there."""
        joined = self.joined(*command)
        return subprocess.run(joined, capture_output=True, text=True, timeout=PATIENCE_S, check=False)

    def must(self, *command: str) -> None:
        """The same, which must end well."""
        found = self.run(*command)
        assert found.returncode == 0, f"{command}: {found.stderr}"

    def end(self) -> None:
        """Nobody holds it any more: the kernel takes its mounts away."""
        assert self._holder.stdin is not None
        self._holder.stdin.close()
        self._holder.wait(PATIENCE_S)
        if self._holder.stdout is not None:
            self._holder.stdout.close()


@contextmanager
def small_disk(folder: Path, size_kib: int = 512) -> Iterator[Namespace]:
    """A file system of ``size_kib`` KiB in memory."""
    if not may_mount():
        pytest.skip("this system gives us no mount namespace")
    place = folder / "disk"
    space = Namespace(place, TMPFS.format(size=size_kib, place=place))
    try:
        assert space.is_there
        yield space
    finally:
        space.end()


@contextmanager
def breaking_disk(folder: Path, size_mib: int = 16) -> Iterator[Namespace]:
    """An ext4 file system on a loop device, which ``broken`` makes read-only with files open, as a dying disk does."""
    if os.geteuid() != 0 or shutil.which("mkfs.ext4") is None or not may_mount():
        pytest.skip("an ext4 on a loop device is root's")
    place, image = folder / "disk", folder / "image"
    with image.open("wb") as file:
        file.truncate(size_mib * 2**20)
    subprocess.run(["mkfs.ext4", "-q", "-F", str(image)], check=True, capture_output=True)
    space = Namespace(place, EXT4.format(image=image, place=place))
    try:
        if not space.is_there:
            pytest.skip("this system gives us no loop device")
        yield space
    finally:
        space.end()


def broken(space: Namespace) -> None:
    """From now on nothing can be written: the kernel's own answer to an error of the disk (ext4(5), ``abort``)."""
    space.must("mount", "-o", "remount,abort", str(space.place))


def mended(space: Namespace, folder: Path) -> None:
    """Unmounted, checked and mounted again: what was on the disk is there, what was only in memory is not."""
    space.must("umount", str(space.place))
    mount_again(space, folder / "image")


def mount_again(space: Namespace, image: Path) -> None:
    """The file system in ``image`` after a cut, in the place of the one that was there."""
    checked = subprocess.run(["e2fsck", "-fy", str(image)], capture_output=True, text=True, check=False)
    assert checked.returncode in (0, 1), checked.stdout  # 1: errors corrected, the journal replayed among them
    space.must("mount", "-o", "loop", str(image), str(space.place))


def photographed(running: subprocess.Popen[str], image: Path, copy: Path) -> None:
    """What has come to the disk by now, of a program that is held meanwhile: what a power cut would leave of it."""
    running.send_signal(signal.SIGSTOP)
    while any(each.read_text().rpartition(")")[2].split()[0] not in "TZ" for each in _threads(running.pid)):
        time.sleep(0.001)  # a flush that it was in comes to its end
    found, before = image.read_bytes(), b""
    while found != before:  # nor does the kernel write by itself meanwhile
        found, before = image.read_bytes(), found
    copy.write_bytes(found)
    running.send_signal(signal.SIGCONT)


def _threads(pid: int) -> list[Path]:
    return list(Path(f"/proc/{pid}/task").glob("*/stat"))


@functools.cache
def may_mount() -> bool:
    """Whether we may have a mount namespace."""
    if shutil.which("unshare") is None or shutil.which("nsenter") is None:
        return False
    script = "mount -t tmpfs none /mnt"
    return subprocess.run(["unshare", *_flags(), "sh", "-c", script], capture_output=True, check=False).returncode == 0


def _flags() -> list[str]:
    return ["-m"] if os.geteuid() == 0 else ["-Urm"]
