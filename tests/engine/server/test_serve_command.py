"""``servewise serve`` as users run it."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

pytest.importorskip("torch")
pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from tests.cli.running import invoke

from servewise.ask.serve import ServeOptions, block_bytes, lines, service
from servewise.engine.checkpoint import Checkpoint
from servewise.errors import InputError

SMALL: dict[str, Any] = {"port": 0, "dtype": "float32", "threads": 1}


@contextmanager
def served(checkpoint: Checkpoint, *options: str, **environment: str) -> Iterator[tuple[subprocess.Popen[str], Any]]:
    """A real process, and what it said at its start."""
    command = [sys.executable, "-m", "servewise", "serve", str(checkpoint.path), "--port", "0", "--threads", "1"]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([*command, *options, "--json"], **pipes, env=os.environ | environment) as process:
        try:
            assert process.stdout is not None
            text = ""
            while not text.endswith("\n}\n"):
                line = process.stdout.readline()
                assert line, process.communicate()
                text += line
            yield process, json.loads(text)["result"]
        finally:
            process.kill()


@contextmanager
def asked(result: Any, path: str, body: object = None, key: str = "") -> Iterator[http.client.HTTPResponse]:
    """The open answer."""
    where = urlsplit(result["url"])
    assert where.hostname is not None
    connection = http.client.HTTPConnection(where.hostname, where.port, timeout=60)
    headers = {"content-type": "application/json", "authorization": f"Bearer {key}"}
    connection.request("POST" if body else "GET", path, json.dumps(body) if body else None, headers)
    with closing(connection), connection.getresponse() as response:
        yield response


def told(*request: Any) -> tuple[int, str]:
    """Status and text."""
    with asked(*request) as response:
        return response.status, response.read().decode()


@pytest.mark.slow
def test_from_start_to_stop(checkpoint: Checkpoint) -> None:
    """It prints where it listens as JSON, answers there, lets a stream end after SIGTERM, and ends with 0.

    Neither its output nor its metrics nor its arguments hold a key or a prompt, though some requests were refused, and
    its template's process is gone.
    """
    key, prompt = "sk-of-the-environment", "a prompt that is nobody's business"
    with served(checkpoint, SERVEWISE_API_KEY=key) as (process, result):
        chat = {"model": result["model"], "messages": [{"role": "user", "content": prompt}], "ignore_eos": True}
        models = json.loads(told(result, "/v1/models", None, key)[1])
        refused = [told(result, "/v1/chat/completions", chat | more, key) for more in ({"n": 0}, {"x": prompt})]
        wrong = told(result, "/v1/models", None, f"{key}x")
        metrics = told(result, "/metrics")[1]
        with asked(result, "/v1/chat/completions", chat | {"max_tokens": 200, "stream": True}, key) as streamed:
            first = streamed.readline()
            arguments = Path(f"/proc/{process.pid}/cmdline").read_text()
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            process.send_signal(signal.SIGTERM)
            rest = streamed.read()
        out = process.communicate(timeout=60)

    assert models["data"][0]["id"] == result["model"]
    assert [status for status, _ in (*refused, wrong)] == [400, 400, 401]
    assert first.startswith(b"data: {")
    assert rest.strip().endswith(b"data: [DONE]")
    assert (out, process.returncode) == (("", ""), 0)
    for said in (arguments, metrics, wrong[1], json.dumps(result)):
        assert key not in said
        assert prompt not in said
    assert len(children) == 1
    assert not Path(f"/proc/{children[0]}").exists()


def test_a_public_address_needs_a_key_or_a_word(checkpoint: Checkpoint, tmp_path: Path) -> None:
    """Bound beyond loopback without a key: refused with what to do, nothing listens; meant so, it says so loudly."""
    path = str(checkpoint.path)
    with pytest.raises(InputError, match="no API key") as refused:
        service(path, ServeOptions(host="0.0.0.0", **SMALL))
    (tmp_path / "keys").write_text("sk-a\nsk-b\n")
    (tmp_path / "keys").chmod(0o600)
    keyed = service(path, ServeOptions(host="0.0.0.0", key_file=str(tmp_path / "keys"), **SMALL))
    meant = service(path, ServeOptions(host="0.0.0.0", no_key=True, **SMALL))
    for each in (keyed, meant):
        each.server.listener.close()

    assert "--no-api-key" in str(refused.value)
    assert [each.code for each in keyed.answer.caveats] == []
    assert keyed.answer.result["api_key"] is True
    assert "OPEN TO THE NETWORK" in "\n".join(lines(meant.answer))


def test_limits_reach_the_server(checkpoint: Checkpoint) -> None:
    """What the options say is what the server holds requests to; a request cannot ask for more than it ever holds."""
    options = ServeOptions(slots=2, queued=3, prompt_tokens=7, output_tokens=5, body_bytes=9000.0, **SMALL)
    found = service(str(checkpoint.path), options)
    found.server.listener.close()
    api = found.server.api

    assert (api.door.places, api.served.limits.choices) == (5, 5)
    assert (api.served.limits.prompt_tokens, api.served.limits.output_tokens) == (7, 5)
    assert api.limits.body_bytes == 9000
    assert found.template is not None


def test_what_it_says_at_the_start(checkpoint: Checkpoint) -> None:
    """The address, the pool in blocks, tokens and bytes, the limits; a pool below the context says so."""
    found = service(str(checkpoint.path), ServeOptions(blocks=10, block_tokens=8, **SMALL))
    found.server.listener.close()
    text = "\n".join(lines(found.answer))
    config = checkpoint.config
    kv_bytes = 10 * 8 * 2 * config.layers * config.kv_heads * config.head_dim * 4

    assert found.answer.result["kv_bytes"] == kv_bytes
    assert found.answer.result["kv_tokens"] == 80
    assert found.answer.result["max_context_tokens"] == 80
    assert found.answer.result["url"] in text
    assert "10 blocks of 8 = 80 tokens" in text
    assert "80 of the model's 512 tokens of context" in text


def test_memory_of_the_pool(checkpoint: Checkpoint) -> None:
    """``--kv-memory`` gives as many whole blocks as it holds; by default all slots can fill their context."""
    import torch

    each = block_bytes(checkpoint.config, 16, torch.float32)
    for options, blocks in (
        (ServeOptions(kv_memory_bytes=3.5 * each, **SMALL), 3),
        (ServeOptions(slots=2, **SMALL), 2 * 512 // 16),
    ):
        found = service(str(checkpoint.path), options)
        found.server.listener.close()

        assert found.answer.result["kv_blocks"] == blocks


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"policy": "fastest"}, "policy"),
        ({"slots": 0}, "slots"),
        ({"slots": 600}, "max batched tokens"),
        ({"blocks": 4, "kv_memory_bytes": 1e9}, "give one"),
        ({"kv_memory_bytes": 1.0}, "KV memory"),
        ({"blocks": 0}, "blocks"),
        ({"block_tokens": 0}, "block tokens"),
        ({"context_tokens": 1000}, "512"),
        ({"dtype": "int3"}, "dtype"),
        ({"port": 70_000}, "port"),
        ({"device": "tpu"}, "device"),
        ({"key": ""}, "API key"),
        ({"key": "sk", "key_file": "keys"}, "twice"),
        ({"key_file": "/nowhere/keys"}, "cannot be read"),
        ({"trust_remote_code": True}, "never run"),
        ({"queued": -1}, "max queued"),
        ({"connections": 0}, "max connections"),
        ({"output_tokens": 0}, "max output tokens"),
        ({"head_s": 0}, "head timeout"),
        ({"stuck_s": 0}, "stuck after"),
        ({"window_s": -1}, "window"),
        ({"seed": -1}, "seed"),
    ],
)
def test_wrong_settings(checkpoint: Checkpoint, wrong: dict[str, Any], said: str) -> None:
    """Each is one line that names the setting; nothing is left listening."""
    with pytest.raises(InputError) as raised:
        service(str(checkpoint.path), ServeOptions(**SMALL | wrong))

    assert said in str(raised.value)


def test_an_unknown_model(tmp_path: Path) -> None:
    """A model that is not here is one line and exit code 2."""
    found = invoke("serve", str(tmp_path / "nothing"))

    assert found.exit_code == 2
    assert len(found.stderr.splitlines()) == 1
