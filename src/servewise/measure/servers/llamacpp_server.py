"""llama.cpp's HTTP server as the package xllamacpp carries it; run as a script by that package's own Python.

One argument, a JSON object: ``set`` maps dotted names of ``CommonParams`` to values.
"""

from __future__ import annotations

import json
import signal
import sys
from functools import reduce
from typing import Any


def serve(settings: dict[str, Any]) -> None:
    """Serve until SIGTERM."""
    import xllamacpp  # type: ignore[import-not-found, unused-ignore]

    params = xllamacpp.CommonParams()
    for name, value in settings["set"].items():
        *outer, last = name.split(".")
        setattr(reduce(getattr, outer, params), last, set(value) if isinstance(value, list) else value)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    server = xllamacpp.Server(params)
    print("xllamacpp", xllamacpp.__version__, "listens at", server.listening_address, flush=True)
    signal.sigwait({signal.SIGTERM, signal.SIGINT})


if __name__ == "__main__":
    serve(json.loads(sys.argv[1]))
