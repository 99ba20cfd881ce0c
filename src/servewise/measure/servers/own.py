"""The project's own engine: ``servewise serve`` by this very Python."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from servewise.measure.servers.launch import Launch
from servewise.version import __version__


@dataclass(frozen=True, slots=True, kw_only=True)
class Own:
    """A checkpoint served by the reference engine.

    ``policy``: static (a batch of ``slots`` starts when it is full), dynamic (or after a window), continuous.
    ``extra``: further options of ``servewise serve``. ``python`` has servewise[engine] installed.
    """

    checkpoint: Path
    model: str
    slots: int
    context_tokens: int
    threads: int
    policy: str = "continuous"
    prefix_cache: bool = False
    max_batched_tokens: int = 512
    extra: tuple[str, ...] = ()
    python: Path = field(default_factory=lambda: Path(sys.executable))

    @property
    def name(self) -> str:
        """What it is called in tables."""
        return "servewise"

    def launch(self, port: int) -> Launch:
        """See ``Launcher``."""
        values = {
            "--policy": self.policy,
            "--slots": self.slots,
            "--max-context": self.context_tokens,
            "--threads": self.threads,
            "--max-batched-tokens": self.max_batched_tokens,
            "--name": self.model,
            "--port": port,
            "--grace": 1,
        }
        options = (str(each) for pair in values.items() for each in pair)
        cache = "--prefix-cache" if self.prefix_cache else "--no-prefix-cache"
        serve = (str(self.python), "-m", "servewise", "serve", str(self.checkpoint))
        return Launch(
            command=(*serve, *options, cache, *self.extra),
            model=self.model,
            version=f"{__version__}, PyTorch {_torch()}",
            first_requests=self.slots if self.policy == "static" else 1,
        )


def _torch() -> str:
    try:
        return version("torch")
    except PackageNotFoundError:
        return "?"
