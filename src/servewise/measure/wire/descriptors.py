"""Room for as many sockets as the system allows this user."""

from __future__ import annotations

import contextlib

try:
    import resource
except ImportError:  # no such limit to raise (Windows)
    resource = None  # type: ignore[assignment]


def allow_many_sockets() -> None:
    """Raise the soft limit of open files, often 1,024, to the hard one; left as it is where that is refused."""
    if resource is None:
        return
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
