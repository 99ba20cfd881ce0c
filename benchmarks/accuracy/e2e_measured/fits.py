"""What ``fit_server_overheads`` wrote: overheads by split, and the shapes of unpublished settings by family."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from benchmarks.accuracy.e2e_measured.points import DATA
from servewise.steptime.server_overheads import ServerOverheads


@cache
def _document() -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads((DATA / "fits.json").read_text("utf-8"))
    return found


def shapes() -> Mapping[str, str]:
    """The shape of each family whose settings are unpublished."""
    found: Mapping[str, str] = _document()["shapes"]
    return found


def overheads_of(split: str) -> ServerOverheads:
    """What the split's fit found."""
    return ServerOverheads(**_document()["fits"][split]["overheads"])


def points_fitted(split: str) -> int:
    """How many points the fit took of those it was allowed to see."""
    count: int = _document()["fits"][split]["points"]
    return count
