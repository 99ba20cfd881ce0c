"""Keys from a file, and nowhere else than in requests."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.cli.running import invoke

from servewise.engine.server.keys import checked_key, keys_in
from servewise.errors import InputError


def file_with(folder: Path, content: bytes, mode: int = 0o600) -> Path:
    """A key file."""
    path = folder / "keys"
    path.write_bytes(content)
    path.chmod(mode)
    return path


def test_keys_of_a_file(tmp_path: Path) -> None:
    """One a line; remarks, empty lines and spaces around are passed over."""
    assert keys_in(file_with(tmp_path, b"# old and new\n\n sk-old \r\nsk-new\n", 0o640)) == ("sk-old", "sk-new")


@pytest.mark.parametrize(
    "content", [b"", b"# none\n", b"sk-secret \xff\n", b"sk-secret a\x00b\n", b"k\n" * 65, b"k" * 70_000]
)
def test_a_file_that_holds_none(tmp_path: Path, content: bytes) -> None:
    """No key, one that no header can carry, too many: one line, which does not quote the key."""
    with pytest.raises(InputError) as refused:
        keys_in(file_with(tmp_path, content))

    assert "sk-secret" not in str(refused.value)
    assert "keys" in str(refused.value)


@pytest.mark.parametrize("mode", [0o604, 0o602, 0o666])
def test_a_file_that_everybody_can_read(tmp_path: Path, mode: int) -> None:
    """It is refused with the command that mends it."""
    path = file_with(tmp_path, b"sk-secret\n", mode)
    with pytest.raises(InputError, match="chmod o="):
        keys_in(path)

    path.chmod(stat.S_IMODE(path.stat().st_mode) & ~0o007)
    assert keys_in(path) == ("sk-secret",)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    """One line."""
    with pytest.raises(InputError, match="cannot be read"):
        keys_in(tmp_path / "keys")


@pytest.mark.parametrize("key", ["", " a", "a\n", "ä"])
def test_a_key_that_no_header_carries(key: str) -> None:
    """It would never fit; refused at the start."""
    with pytest.raises(InputError):
        checked_key(key, "key")


def test_a_key_on_the_command_line_is_refused(tmp_path: Path) -> None:
    """It would show in the process list; the error does not repeat it, and says where keys belong."""
    found = invoke("serve", str(tmp_path), "--api-key", "sk-secret")

    assert found.exit_code == 2
    assert "SERVEWISE_API_KEY" in found.stderr
    assert "sk-secret" not in found.output


def test_help_shows_no_key() -> None:
    """With a key in the environment, --help does not print it."""
    command = [sys.executable, "-m", "servewise", "serve", "--help"]
    environment = {"SERVEWISE_API_KEY": "sk-secret", "PATH": "/usr/bin:/bin"}
    found = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120, check=True)

    assert "--api-key-file" in found.stdout
    assert "sk-secret" not in found.stdout + found.stderr
