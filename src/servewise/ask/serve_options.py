"""How the reference engine serves a model, as it was asked for."""

from __future__ import annotations

from dataclasses import dataclass

from servewise.ask.serving import WINDOW_S

SLOTS = 32  # of continuous batching; on a CPU more rows only share out the same arithmetic
BATCHED_TOKENS = 512
BLOCK_TOKENS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions:
    """How a model is served. ``slots`` None: 32 for continuous, 8 for the others.

    ``blocks`` or ``kv_memory_bytes`` size the pool (neither: what all slots could fill, at most a quarter of the
    memory); ``context_tokens`` is the longest prompt and reply together, the model's own or less. ``host`` other than
    loopback is seen from other machines: then it takes a ``key``, a ``key_file`` (one key a line), or ``no_key``, which
    says that something else keeps strangers out. ``grace_s``: what requests have to end after a signal. ``queued``
    choices may wait beyond ``slots``, then the answer is 429. The others are limits of a request (None: the context's)
    and of the connections (``engine.server.limits``); ``body_bytes`` None: what any prompt fits into. ``stuck_s``:
    a step that takes longer makes ``/health`` 503.
    ``kernels``: ``torch``, ``compiled`` (bfloat16 on x86-64, built at first use), or ``auto``, these where they can be.
    """

    policy: str = "continuous"
    slots: int | None = None
    max_batched_tokens: int = BATCHED_TOKENS
    window_s: float = WINDOW_S
    chunked: bool = True
    reserve: bool = False
    prefix_cache: bool = True
    blocks: int | None = None
    kv_memory_bytes: float | None = None
    block_tokens: int = BLOCK_TOKENS
    context_tokens: int | None = None
    dtype: str = "bfloat16"
    device: str = "cpu"
    kernels: str = "auto"
    threads: int | None = None
    host: str = "127.0.0.1"
    port: int = 8000
    name: str | None = None
    key: str | None = None
    key_file: str | None = None
    no_key: bool = False
    trust_remote_code: bool = False
    seed: int = 0
    grace_s: int = 30
    queued: int = 256
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    choices: int = 256
    connections: int = 1000
    body_bytes: float | None = None
    body_s: float = 60.0
    head_s: float = 10.0
    stalled_s: float = 30.0
    unread_tokens: int = 4096
    stuck_s: float = 600.0
