"""The page's application for the tests, asked by Starlette's client under the page's own name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from starlette.testclient import TestClient

from servewise.app.server import page_app
from servewise.cli.app import PRELOADED
from servewise.cli.asked import answer_of

PORT = 8010
OWN = f"http://127.0.0.1:{PORT}"


@contextmanager
def page(*runs: Path) -> Iterator[TestClient]:
    """A client of a page of its own; its requests carry the page's origin, as a browser's do."""
    app = page_app(answer_of, port=PORT, preload=PRELOADED, runs=[str(run) for run in runs])
    with TestClient(app, base_url=OWN, headers={"origin": OWN, "x-tab": "test"}) as client:
        yield client
