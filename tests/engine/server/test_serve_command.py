"""``servewise serve`` as users run it."""

from __future__ import annotations

import http.client
import json
import signal
import subprocess
import sys
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


@pytest.mark.slow
def test_from_start_to_stop(checkpoint: Checkpoint) -> None:
    """It prints where it listens as JSON, answers there, and ends with 0 after SIGTERM."""
    command = [
        sys.executable,
        "-m",
        "servewise",
        "serve",
        str(checkpoint.path),
        "--port",
        "0",
        "--threads",
        "1",
        "--json",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            text = ""
            while not text.endswith("\n}\n"):
                line = process.stdout.readline()
                assert line, process.communicate()
                text += line
            result = json.loads(text)["result"]
            where = urlsplit(result["url"])
            assert where.hostname is not None
            connection = http.client.HTTPConnection(where.hostname, where.port, timeout=30)
            connection.request("GET", "/v1/models")
            models = json.loads(connection.getresponse().read())
            connection.close()
            process.send_signal(signal.SIGTERM)
            rest = process.communicate(timeout=60)
        finally:
            process.kill()

    assert models["data"][0]["id"] == result["model"]
    assert (rest, process.returncode) == (("", ""), 0)


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
