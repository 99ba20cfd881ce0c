"""What it takes to start a server: the seam between the kinds of server and the one way in which all are run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A command line and what it gives.

    ``model`` is what clients call the model, ``version`` the server software's, ``health`` the path that answers 200
    once it is up. ``first_requests``: how many requests at once prove that it works (a static batch runs only when it
    is full). ``patience_s``: the most that it may take until then. ``environment`` is set beside the inherited one.
    """

    command: tuple[str, ...]
    model: str
    version: str
    health: str = "/health"
    first_requests: int = 1
    patience_s: float = 180.0
    grace_s: float = 10.0
    environment: Mapping[str, str] = field(default_factory=dict)


class Launcher(Protocol):
    """A kind of server with its settings; frozen."""

    @property
    def name(self) -> str:
        """``llama.cpp``, ``vLLM``, ``servewise``."""
        ...

    def launch(self, port: int) -> Launch:
        """The command line that makes it listen on that port of loopback."""
        ...
