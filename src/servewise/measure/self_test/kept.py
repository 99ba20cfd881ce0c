"""The last self-test's result, kept on this machine, so that later runs know how far to trust their times."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from servewise.atomic import replace_whole
from servewise.caveats import Caveat
from servewise.measure.self_test.accuracy import Accuracy
from servewise.units import format_seconds

SCHEMA = "servewise.self-test/1"
TOLERABLE_S = 5e-3  # a p99 TTFT error that leaves a 200 ms TTFT right within 2.5%


@dataclass(frozen=True, slots=True)
class KnownError:
    """The client's p99 error [s] of TTFT and TPOT up to ``streams`` and ``tokens_per_s`` on this machine."""

    streams: int
    tokens_per_s: float
    ttft_p99_s: float
    tpot_p99_s: float


def folder_of_cache() -> Path:
    """``servewise`` in ``XDG_CACHE_HOME``, or in ``~/.cache``."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "servewise"


def keep(accuracies: Sequence[Accuracy], date: str, folder: Path | None = None) -> Path | None:
    """Keep the results; where, or None where nothing can be written there."""
    path = (folder or folder_of_cache()) / "self-test.json"
    rows = [_row(each) for each in accuracies if each.ttft.n and not each.failed]
    document = {"schema": SCHEMA, "machine": _machine(), "date": date, "rows": rows}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_whole(path, json.dumps(document, indent=1).encode())
    except OSError:
        return None
    return path


def known_error(streams: int, tokens_per_s: float, folder: Path | None = None) -> KnownError | None:
    """The client's error on this machine at that load, by the last self-test; None where it does not reach so far.

    The error of the least load tested that is no less in either respect, and no less than that of any smaller one.
    """
    rows = _kept(folder)
    beyond = [row for row in rows if row.streams >= streams and row.tokens_per_s >= tokens_per_s]
    if not beyond:
        return None
    least = min(beyond, key=lambda row: (row.streams, row.tokens_per_s))
    covered = [row for row in rows if row.streams <= least.streams]
    return KnownError(
        least.streams,
        least.tokens_per_s,
        max(row.ttft_p99_s for row in covered),
        max(row.tpot_p99_s for row in covered),
    )


def beyond_self_test(streams: int, tokens_per_s: float, folder: Path | None = None) -> tuple[Caveat, ...]:
    """The caveat of a run beyond what the self-test covered, or at a load where it found errors too large to pass over.

    None where no self-test was made here: a run without one is judged by its own lateness alone.
    """
    rows = _kept(folder)
    if not rows:
        return ()
    known = known_error(streams, tokens_per_s, folder)
    if known is None:
        most = max(rows, key=lambda row: (row.streams, row.tokens_per_s))
        tested = f"{most.streams} streams and {most.tokens_per_s:,.0f} tokens/s"
        message = (
            f"{streams} streams and {tokens_per_s:,.0f} tokens/s are beyond the client's self-test here ({tested})"
        )
        return (Caveat("beyond-self-test", message, f"bench --self-test with {streams} streams"),)
    if known.ttft_p99_s > TOLERABLE_S:
        said = format_seconds(known.ttft_p99_s)
        message = f"at {streams} streams the client's own TTFT error here is up to {said} (p99, by its self-test)"
        return (Caveat("client-error-large", message, "more --workers, on cores that the server does not use"),)
    return ()


def _kept(folder: Path | None) -> tuple[KnownError, ...]:
    """What was kept for this machine; nothing where the file is missing, damaged, or another machine's."""
    path = (folder or folder_of_cache()) / "self-test.json"
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return ()
    if not isinstance(document, dict) or (document.get("schema"), document.get("machine")) != (SCHEMA, _machine()):
        return ()
    rows = document.get("rows")
    return tuple(filter(None, map(_known, rows))) if isinstance(rows, list) else ()


def _row(accuracy: Accuracy) -> dict[str, float]:
    return {
        "streams": accuracy.streams,
        "tokens_per_s": accuracy.tokens_per_s,
        "ttft_p99_s": accuracy.ttft.p99_size_s,
        "tpot_p99_s": accuracy.tpot.p99_size_s,
    }


def _known(row: object) -> KnownError | None:
    if not isinstance(row, Mapping):
        return None
    values = [row.get(name) for name in ("streams", "tokens_per_s", "ttft_p99_s", "tpot_p99_s")]
    if not all(_is_number(each) for each in values):
        return None
    streams, tokens_per_s, ttft_s, tpot_s = values
    return KnownError(int(_float(streams)), _float(tokens_per_s), _float(ttft_s), _float(tpot_s))


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e12


def _float(value: Any) -> float:
    return float(value)


def _machine() -> dict[str, object]:
    """What an error holds for: another machine, or one with other cores, has another."""
    return {"name": platform.node(), "system": platform.system(), "cores": os.cpu_count()}
