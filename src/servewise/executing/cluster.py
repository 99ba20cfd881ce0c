"""A connection to a Ray cluster: one that runs already, or one started on this machine for as long as it is used."""

from __future__ import annotations

import importlib
import logging
import os
import secrets
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from servewise.errors import InputError, RunFailed

STORE_BYTES = 512 * 2**20  # for objects on a cluster started here; what is beyond goes to disk
PATIENCE_S = 5.0  # for a cluster's port to answer
LONGEST_FOLDER = 60  # bytes; Ray's sockets lie in it, and a socket's path has 107 at most
QUIET: dict[str, Any] = {"log_to_driver": False, "configure_logging": False}
SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",  # nothing is sent to anybody
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # else a warning
}
JOINING, STARTING = 3, 60  # times
STARTS = 3  # each may take half a minute where a machine is busy; Ray gives no more
ALONE = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"


@contextmanager
def connect(address: str | None = None, *, cores: int | None = None) -> Iterator[ModuleType]:
    """The module ``ray``, connected to the cluster at ``address``; the connection ends with the context.

    ``address``: ``host:port`` of the cluster's head from one of its own machines, ``ray://host:port`` from any other
    machine; None: the one that RAY_ADDRESS or this machine's ``ray start`` names, else one started here with
    ``cores``, on loopback, which ends with the context. A connection that the caller's program already has is used,
    and left. Raises InputError where Ray is not installed or the address is none, RunFailed where nobody answers.
    """
    found = address if address is not None and address != "auto" else running()
    if found is None:
        _keep_to_this_machine()
    ray = _installed(looks=STARTING if found is None else JOINING)
    if ray.is_initialized():
        yield ray
        return
    folder = None
    if found is None:
        folder = _started(ray, cores)
    else:
        _join(ray, found)
    try:
        yield ray
    finally:
        ray.shutdown()
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def running() -> str | None:
    """The cluster that RAY_ADDRESS names, else the one that ``ray start`` last began on this machine, if it answers."""
    named = os.environ.get("RAY_ADDRESS", "")
    if named and named != "auto":
        return named
    try:
        written = (Path(os.environ.get("RAY_TMPDIR") or "/tmp") / "ray" / "ray_current_cluster").read_text().strip()
        host_and_port(written)
        _answering(written)
    except (OSError, ValueError, InputError, RunFailed):  # a note that another cluster left
        return None
    return written


def _keep_to_this_machine() -> None:
    """Settings for a cluster of our own, which Ray reads as it is imported and for the rest of the process.

    Ray takes this machine's outer address even for 127.0.0.1, and then listens on all of them, unless it thinks that
    the system is one where it cannot do clusters (macOS, Windows). Its token, of Ray 2.52 and later, keeps out others
    on this machine.
    """
    if "ray" in sys.modules:
        return
    os.environ[ALONE] = "0"
    if "RAY_AUTH_MODE" not in os.environ:
        os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}


def _installed(looks: int) -> ModuleType:
    """Ray, which looks for a cluster's head so many times, a second or more each."""
    for name, value in (SETTINGS | {"RAY_NUM_REDIS_GET_RETRIES": str(looks)}).items():
        os.environ.setdefault(name, value)
    try:
        import ray
    except ImportError as error:
        raise InputError("Ray is not installed", where="executor", hint="pip install 'servewise[ray]'") from error
    logging.getLogger("ray").setLevel(logging.CRITICAL)
    worker: Any = importlib.import_module("ray._private.worker")
    worker._worker_logs_enabled = False  # it prints what it hears of nodes on our stdout, whatever log_to_driver says
    assert isinstance(ray, ModuleType)
    return ray


def _join(ray: ModuleType, address: str) -> None:
    """Connect to a cluster that runs."""
    _answering(address)
    try:
        ray.init(address=address, **QUIET)
    except Exception as error:  # Ray's own are of many kinds, down to plain Exception
        raise _unreachable(address, error) from error


def _started(ray: ModuleType, cores: int | None) -> str:
    """A cluster of one node, this machine; the folder that it writes in, gone with it."""
    for left in reversed(range(STARTS)):
        folder = _new_folder()
        try:
            ray.init(
                address="local",
                num_cpus=cores,
                num_gpus=0,
                include_dashboard=False,
                object_store_memory=STORE_BYTES,
                _node_ip_address="127.0.0.1",
                _temp_dir=folder,
                **QUIET,
            )
        except BaseException as error:
            ray.shutdown()
            shutil.rmtree(folder, ignore_errors=True)
            if not isinstance(error, Exception):
                raise
            if not left:
                raise RunFailed(f"Ray does not start on this machine: {first_line(error)}") from error
        else:
            break
    return folder


def _new_folder() -> str:
    parent = tempfile.gettempdir()
    return tempfile.mkdtemp(prefix="ray", dir=parent if len(os.fsencode(parent)) < LONGEST_FOLDER else "/tmp")


def _answering(address: str) -> None:
    """Refuse an address that is none, or at which nobody listens, within seconds; Ray itself would try for minutes."""
    host, port = host_and_port(address)
    try:
        socket.create_connection((host, port), PATIENCE_S).close()
    except OSError as error:
        raise _unreachable(address, error) from error


def answers(address: str) -> bool:
    """Whether somebody listens there."""
    try:
        _answering(address)
    except RunFailed:
        return False
    return True


def host_and_port(address: str) -> tuple[str, int]:
    """Of ``host:port`` or ``ray://host:port``.

    >>> host_and_port("ray://10.0.0.5:10001"), host_and_port("[::1]:6379")
    (('10.0.0.5', 10001), ('::1', 6379))
    """
    host, _, port = address.removeprefix("ray://").rstrip("/").rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or "/" in host or not (port.isdecimal() and port.isascii()) or not 0 < int(port) < 2**16:
        hint = "host:port of its head, ray://host:port of its client port, or ray alone"
        raise InputError(f"{address!r} is no address of a Ray cluster", where="executor", hint=hint)
    return host, int(port)


def _unreachable(address: str, error: BaseException) -> RunFailed:
    return RunFailed(f"no Ray cluster at {address}: {first_line(error)}")


def first_line(error: BaseException) -> str:
    """What an error of Ray's says first; its pages of advice are left out."""
    lines = str(getattr(error, "strerror", None) or error).strip().splitlines()
    return lines[0].strip().rstrip(".") if lines else type(error).__name__
