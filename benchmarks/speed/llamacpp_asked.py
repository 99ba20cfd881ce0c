"""llama.cpp's server asked from within: a script for a Python that has xllamacpp; it needs no servewise.

Arguments: GGUF file, threads, slots, context tokens a slot. A line of JSON in (prompts, new), a line of JSON out.
"""

from __future__ import annotations

import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import xllamacpp  # type: ignore[import-not-found, unused-ignore]


def main(path: str, threads: int, slots: int, context: int) -> None:
    """Answer until the input ends."""
    settings = xllamacpp.CommonParams()
    settings.model.path, settings.n_parallel, settings.n_ctx = path, slots, slots * context
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = threads
    server = xllamacpp.Server(settings)
    print(json.dumps({"version": xllamacpp.__version__}), flush=True)
    with ThreadPoolExecutor(slots) as pool:
        for line in sys.stdin:
            asked = json.loads(line)
            new = asked["new"]
            start = time.perf_counter()
            replies = list(pool.map(partial(_reply, server, new), asked["prompts"]))
            taken = time.perf_counter() - start
            if any(reply["usage"]["completion_tokens"] != new for reply in replies):
                raise SystemExit("a reply is not whole")
            print(json.dumps({"seconds": taken}), flush=True)


def _reply(server: Any, new: int, prompt: list[int]) -> Any:
    return server.handle_completions(
        {"prompt": prompt, "max_tokens": new, "temperature": 0, "ignore_eos": True, "cache_prompt": False}
    )


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:5]))
