"""The services that an audit asks, on loopback, with recorded answers: PyPI's pages behind a proxy, and OSV's query.

pip-audit asks PyPI by a name that cannot be set, over TLS; so this is a proxy (HTTPS_PROXY) with a certificate for that
name by an authority made for the test.
"""

from __future__ import annotations

import json
import ssl
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import yaml

DATA = Path(__file__).with_name("data")
HOST = "pypi.org"

#: What a path gives: the body as JSON, or the number of an error.
Pages = Callable[[str], Any]


def page(name: str) -> Any:
    """PyPI's page of a project, as recorded."""
    return json.loads((DATA / "index" / f"{name}.json").read_text())


def advisories() -> list[Mapping[str, Any]]:
    """Every recorded advisory, dates as text, as OSV's API gives them."""
    records = [yaml.load(each.read_text(), yaml.BaseLoader) for each in sorted(DATA.rglob("PYSEC-*.yaml"))]
    return [each for each in records if each]


def osv(query: Mapping[str, Any]) -> Any:
    """OSV's answer to v1/query: the records that list the version; nothing at all where there is none."""
    name, version = query["package"]["name"], query["version"]
    holds = [
        record
        for record in advisories()
        for each in record["affected"]
        if each["package"]["name"] == name and version in each["versions"]
    ]
    return {"vulns": holds} if holds else {}


@contextmanager
def serving(pages: Pages, query: Callable[[Mapping[str, Any]], Any], certificate: Path | None = None) -> Iterator[int]:
    """The port at which both are answered, and by CONNECT over TLS where there is a certificate."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version, timeout = "HTTP/1.1", 20

        def do_CONNECT(self) -> None:
            assert certificate
            self.send_response(200, "Connection established")
            self.end_headers()
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate / "certificate.pem", certificate / "key.pem")
            self.connection = context.wrap_socket(self.connection, server_side=True)
            self.rfile, self.wfile = self.connection.makefile("rb"), self.connection.makefile("wb", buffering=0)
            self.close_connection = False

        def finish(self) -> None:
            super().finish()
            self.connection.close()  # TLS has taken the socket over from the one that the server closes

        def do_GET(self) -> None:
            self._answer(pages(self.path))

        def do_POST(self) -> None:
            self._answer(query(json.loads(self.rfile.read(int(self.headers["Content-Length"])))))

        def _answer(self, said: Any) -> None:
            body = b"" if isinstance(said, int) else json.dumps(said).encode()
            self.send_response(said if isinstance(said, int) else 200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads, server.block_on_close = True, False
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def as_pypi(pages: Pages, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let all that asks PyPI ask ``pages`` instead; ``folder`` holds the certificates."""
    _certify(folder)
    with serving(pages, osv, folder) as port:
        for name in ("HTTPS_PROXY", "https_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{port}")
        for name in ("NO_PROXY", "no_proxy", "SSL_CERT_DIR"):
            monkeypatch.delenv(name, raising=False)
        for name in ("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"):
            monkeypatch.setenv(name, str(folder / "authority.pem"))
        yield


def _certify(folder: Path) -> None:
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=a test")
    (folder / "names").write_text(f"subjectAltName=DNS:{HOST}\n")
    for words in (
        ("req", "-x509", *key, "-days", "2", "-keyout", "authority-key.pem", "-out", "authority.pem"),
        ("req", *key, "-keyout", "key.pem", "-out", "request.pem"),
        ("x509", "-req", "-in", "request.pem", "-CA", "authority.pem", "-CAkey", "authority-key.pem")
        + ("-CAcreateserial", "-extfile", "names", "-days", "2", "-out", "certificate.pem"),
    ):
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True, timeout=30)
