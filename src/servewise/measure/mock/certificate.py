"""A certificate for the time of a run: signed by itself, or by an authority made for it, and good or bad."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Literal

from servewise.errors import InputError

Certificate = Literal["self-signed", "signed", "expired", "other-host"]
_NAMES = "subjectAltName=DNS:localhost,IP:127.0.0.1,IP:::1"
_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=localhost")


def can_make_certificates() -> bool:
    """Whether the ``openssl`` command is there."""
    return shutil.which("openssl") is not None


def make_certificate(folder: Path, kind: Certificate = "self-signed") -> None:
    """``certificate.pem`` and ``key.pem`` for localhost in ``folder``, and the ``authority.pem`` that signed it.

    ``other-host`` is for another name, ``expired`` ended yesterday: all but ``self-signed`` are good otherwise where
    the authority is trusted. InputError where nothing here can make one.
    """
    if kind == "self-signed":
        _openssl(folder, "req", "-x509", *_KEY, "-days", "2", "-addext", _NAMES, *_out("key.pem", "certificate.pem"))
        return
    _openssl(folder, "req", "-x509", *_KEY, "-days", "2", *_out("authority-key.pem", "authority.pem"))
    _openssl(folder, "req", *_KEY, *_out("key.pem", "request.pem"))
    (folder / "names").write_text("subjectAltName=DNS:other.example\n" if kind == "other-host" else f"{_NAMES}\n")
    signed_by = ("-CA", "authority.pem", "-CAkey", "authority-key.pem", "-CAcreateserial", "-extfile", "names")
    days = "-1" if kind == "expired" else "2"
    _openssl(folder, "x509", "-req", "-in", "request.pem", *signed_by, "-days", days, "-out", "certificate.pem")


def _out(key: str, made: str) -> tuple[str, ...]:
    return ("-keyout", key, "-out", made)


def _openssl(folder: Path, *words: str) -> None:
    command = shutil.which("openssl")
    if command is None:
        raise InputError("a certificate needs the openssl command", where="MockPlan.tls", hint="install openssl")
    subprocess.run([command, *words], cwd=folder, check=True, capture_output=True, timeout=30)
