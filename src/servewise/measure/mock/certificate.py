"""A certificate that is signed by itself, for the time of a run."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from servewise.errors import InputError


def can_make_certificates() -> bool:
    """Whether the ``openssl`` command is there."""
    return shutil.which("openssl") is not None


def make_certificate(folder: Path) -> None:
    """``certificate.pem`` and ``key.pem`` for localhost in ``folder``; InputError where nothing here can make one."""
    command = shutil.which("openssl")
    if command is None:
        raise InputError("a certificate needs the openssl command", where="MockPlan.tls", hint="install openssl")
    words = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    files = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "certificate.pem")]
    subprocess.run([command, *words, *names, *files], check=True, capture_output=True, timeout=30)
