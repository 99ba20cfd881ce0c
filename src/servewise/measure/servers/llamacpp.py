"""llama.cpp's server: a ``llama-server`` program, or the prebuilt one in the Python package xllamacpp.

Both take the same settings: https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md (2026-11).
xllamacpp's Linux wheel is compiled for AVX2, so a program built on the machine itself is faster.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from servewise.measure.servers.environment import Recipe
from servewise.measure.servers.launch import Launch
from servewise.units import MB

XLLAMACPP = "2026.10.11549"
LLAMACPP_RECIPE = Recipe(name="llamacpp", packages=(f"xllamacpp=={XLLAMACPP}",), needs_bytes=200 * MB)
SCRIPT = Path(__file__).with_name("llamacpp_server.py")
HOST_CACHE_MIB = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class LlamaCpp:
    """A GGUF file served by ``program`` (a ``llama-server``), or by xllamacpp in the environment of ``python``.

    ``slots`` sequences at once, each with ``context_tokens``. ``continuous`` False is ``--no-cont-batching``: prompts
    wait until every running sequence has ended. ``prefix_cache``: a slot keeps its last prompt, and a request goes to
    the slot with the longest common prefix; without it neither that nor the cache in host memory is used.
    """

    gguf: Path
    model: str
    python: Path | None = None
    program: Path | None = None
    slots: int
    context_tokens: int
    threads: int
    continuous: bool = True
    prefix_cache: bool = False

    @property
    def name(self) -> str:
        """What it is called in tables."""
        return "llama.cpp"

    def launch(self, port: int) -> Launch:
        """See ``Launcher``."""
        if self.program is not None:
            return Launch(
                command=(str(self.program), *self._options(port)), model=self.model, version=_version(self.program)
            )
        settings = json.dumps({"set": self._settings(port)})
        return Launch(
            command=(str(self.python), "-I", str(SCRIPT), settings), model=self.model, version=f"xllamacpp {XLLAMACPP}"
        )

    def _options(self, port: int) -> tuple[str, ...]:
        values = {
            "--model": self.gguf,
            "--alias": self.model,
            "--host": "127.0.0.1",
            "--port": port,
            "--parallel": self.slots,
            "--ctx-size": self.slots * self.context_tokens,
            "--threads": self.threads,
            "--threads-batch": self.threads,
            "--cache-ram": HOST_CACHE_MIB if self.prefix_cache else 0,
        }
        switches = (
            "--metrics",
            "--cont-batching" if self.continuous else "--no-cont-batching",
            "--cache-prompt" if self.prefix_cache else "--no-cache-prompt",
        )
        return (*(str(each) for pair in values.items() for each in pair), *switches)

    def _settings(self, port: int) -> dict[str, Any]:
        return {
            "model.path": str(self.gguf),
            "model_alias": [self.model],
            "port": port,
            "n_parallel": self.slots,
            "n_ctx": self.slots * self.context_tokens,
            "cpuparams.n_threads": self.threads,
            "cpuparams_batch.n_threads": self.threads,
            "cache_ram_mib": HOST_CACHE_MIB if self.prefix_cache else 0,
            "cache_idle_slots": self.prefix_cache,
            "endpoint_metrics": True,
            "cont_batching": self.continuous,
            "cache_prompt": self.prefix_cache,
        }


def _version(program: Path) -> str:
    """The first line of ``--version``, which goes to stderr."""
    try:
        told = subprocess.run((str(program), "--version"), capture_output=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return "llama-server of unknown version"
    lines = (told.stderr + told.stdout).decode("utf-8", "replace").splitlines()
    return next((f"llama-server {line.split(':', 1)[1].strip()}" for line in lines if line.startswith("version:")), "?")
