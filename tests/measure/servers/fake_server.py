"""A server for tests, of the standard library: ``fake_server.py PORT HABIT``.

Habits: good; dies (two lines of log, exit 7); hangs (never listens); stubborn (ignores SIGTERM); litters (starts a
process in a session of its own, and says its number); refuses (404 for requests); late (dies after its first request);
batch (answers only once three requests wait).
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    """Answers every GET with 200 and every POST by habit."""

    habit = "good"
    waiting = threading.Barrier(3)

    def do_GET(self) -> None:
        self.answer(200, b"ok")

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        if self.habit == "batch":
            self.waiting.wait(20)
        if self.habit == "refuses":
            self.answer(404, b'{"error": "no such model"}')
            return
        self.answer(200, b"{}")
        if self.habit == "late":
            print("out of memory", flush=True)
            os._exit(3)

    def answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def log_message(self, *_: object) -> None:
        pass


def serve(port: int, habit: str) -> None:
    """Serve, or not, by habit."""
    print("pid", os.getpid(), flush=True)
    if habit == "dies":
        print("loading the model\nerror: no such tensor \x1b[31m'output'\x1b[0m", file=sys.stderr)
        sys.exit(7)
    if habit == "hangs":
        print("still loading", flush=True)
        time.sleep(600)
    if habit == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if habit == "litters":
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
        print("child", child.pid, flush=True)
    Handler.habit = habit
    ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()


if __name__ == "__main__":
    serve(int(sys.argv[1]), sys.argv[2])
