"""Room for as many connections as streams: the limit on open files, raised where the system lets us."""

from __future__ import annotations

from servewise.errors import InputError

SPARE = 64  # files that are open beside the connections


def make_room(streams: int) -> None:
    """Raise this process's limit (and that of workers started later) to its hard limit.

    InputError where even that leaves no room for ``streams`` connections of one process.
    """
    try:
        import resource
    except ImportError:  # no such limit on Windows
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY
    if soft != unlimited and (hard == unlimited or soft < hard):
        try:
            wanted = max(soft, streams + SPARE) if hard == unlimited else hard
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (ValueError, OSError):
            pass  # what there is may be enough
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if soft != unlimited and soft < streams + SPARE:
        what = f"{streams:,} streams need as many open files, and this system allows a process {soft:,}"
        raise InputError(what, where="concurrency", hint="raise the limit (ulimit -n), or use more --workers")
