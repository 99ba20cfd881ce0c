"""``servewise serve``."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import click

from servewise.cli.quantities import DURATION, MEMORY, WHOLE
from servewise.errors import InputError


@click.command("serve")
@click.argument("model")
@click.option("--policy", default="continuous", show_default=True, metavar="static|dynamic|continuous")
@click.option("--slots", type=WHOLE, metavar="N", help="Sequences at once; default: 32, 8 for static and dynamic.")
@click.option("--max-batched-tokens", type=WHOLE, default=512, show_default=True, help="New tokens a step at most.")
@click.option("--window", "window_s", type=DURATION, default="50ms", show_default=True, help="Of dynamic batching.")
@click.option("--chunked/--no-chunked", default=True, show_default=True, help="Prompts may be split over steps.")
@click.option("--reserve/--no-reserve", help="Take the blocks of the whole answer at admission.")
@click.option("--prefix-cache/--no-prefix-cache", default=True, show_default=True, help="Reuse shared prefixes.")
@click.option("--blocks", type=WHOLE, metavar="N", help="KV blocks of the pool.")
@click.option("--kv-memory", "kv_memory_bytes", type=MEMORY, metavar="X", help="Or the pool's memory, e.g. 2GiB.")
@click.option("--block-tokens", type=WHOLE, default=16, show_default=True, help="Tokens a block.")
@click.option(
    "--max-context", "context_tokens", type=WHOLE, metavar="T", help="Prompt and reply; default: the model's."
)
@click.option("--dtype", default="bfloat16", show_default=True, help="What computes: float64, float32, bfloat16 ...")
@click.option("--device", default="cpu", show_default=True, help="cpu, cuda or cuda:N.")
@click.option("--kernels", default="auto", show_default=True, help="auto, torch, or compiled (bfloat16 on x86-64).")
@click.option("--threads", type=WHOLE, metavar="N", help="Of CPU operations; default: PyTorch's choice.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The default is reached from this machine only.")
@click.option("--port", type=WHOLE, default=8000, show_default=True, help="0 takes any free one.")
@click.option("--name", metavar="NAME", help="What clients call the model; default: its own name.")
@click.option(
    "--api-key-file", "key_file", type=click.Path(), metavar="FILE", help="Keys, one a line; a client brings one."
)
@click.option("--api-key", "key", envvar="SERVEWISE_API_KEY", metavar="KEY", help="Only by SERVEWISE_API_KEY.")
@click.option("--no-api-key", "no_key", is_flag=True, help="No key, though other machines can reach it.")
@click.option("--seed", type=WHOLE, default=0, show_default=True, help="Draws seeds for requests that bring none.")
@click.option(
    "--grace", "grace_s", type=WHOLE, default=30, show_default=True, help="Seconds to end requests in, at a stop."
)
@click.option("--max-queued", "queued", type=WHOLE, default=256, show_default=True, help="Waiting; then 429.")
@click.option("--max-prompt-tokens", "prompt_tokens", type=WHOLE, metavar="T", help="Default: the context's.")
@click.option("--max-output-tokens", "output_tokens", type=WHOLE, metavar="T", help="Default: the context's.")
@click.option("--max-choices", "choices", type=WHOLE, default=256, show_default=True, help="Prompts x n a request.")
@click.option("--max-connections", "connections", type=WHOLE, default=1000, show_default=True)
@click.option("--max-body", "body_bytes", type=MEMORY, metavar="X", help="Default: what any prompt fits into.")
@click.option("--body-timeout", "body_s", type=DURATION, default="60s", show_default=True, help="For a whole body.")
@click.option("--head-timeout", "head_s", type=DURATION, default="10s", show_default=True, help="For all headers.")
@click.option(
    "--stall-timeout", "stalled_s", type=DURATION, default="30s", show_default=True, help="For a client to read on."
)
@click.option(
    "--max-unread", "unread_tokens", type=WHOLE, default=4096, show_default=True, help="Tokens a stream may be behind."
)
@click.option(
    "--stuck-after", "stuck_s", type=DURATION, default="10min", show_default=True, help="A step so long: unhealthy."
)
@click.option("--trust-remote-code", is_flag=True, hidden=True)
@click.option("--json", "as_json", is_flag=True, help="The address and the limits as one JSON document on stdout.")
def command(*, model: str, as_json: bool, **options: Any) -> None:
    """Serve MODEL, a local checkpoint, with the reference engine behind an OpenAI-compatible API.

    /v1/chat/completions, /v1/completions, /v1/models, /health, /ready, /metrics, /openapi.json. It runs until Ctrl-C
    or SIGTERM. Needs servewise[engine].
    """
    _refuse_key_on_the_line()
    if any(find_spec(name) is None for name in ("torch", "starlette", "uvicorn")):
        raise InputError("the engine is not installed", where="serve", hint="pip install 'servewise[engine]'")
    from servewise.ask.serve import ServeOptions, lines, service

    found = service(model, ServeOptions(**options))
    click.echo(found.answer.dumps() if as_json else "\n".join(lines(found.answer)))
    found.run()


def _refuse_key_on_the_line() -> None:
    """A key among the arguments can be read by everybody on the machine (``ps``), and stays in the shell's history."""
    if click.get_current_context().get_parameter_source("key") is click.core.ParameterSource.COMMANDLINE:
        hint = "set SERVEWISE_API_KEY, or give --api-key-file FILE"
        raise InputError("a key on the command line shows in the process list", where="--api-key", hint=hint)
