"""``servewise prefix``."""

from __future__ import annotations

from typing import Any

import click

from servewise.cli.names import WORKLOAD
from servewise.cli.quantities import DURATION, NUMBER, PRICE, WHOLE
from servewise.cli.showing import Show, answering


@click.command("prefix")
@click.argument("log", type=WORKLOAD, required=False)
@click.option("--tokenizer", default="characters", show_default=True, help="How prompts that are text are cut.")
@click.option("--block", type=WHOLE, metavar="N", help="Tokens a block, where the trace does not fix them.")
@click.option("--ttl", type=DURATION, metavar="S", help="Life of a block from its last use; default: the terms'.")
@click.option("--capacity", type=WHOLE, metavar="T", help="Tokens that the cache holds; default: endless.")
@click.option("--price", type=PRICE, metavar="P", help="Dollars per million input tokens.")
@click.option("--terms", default="tenth", show_default=True, help="A hosted cache's terms, e.g. anthropic-5m.")
@click.option("--prompt-tokens", type=WHOLE, metavar="N", help="Without a trace: tokens of a prompt,")
@click.option("--prefix-tokens", type=WHOLE, metavar="N", help="of which so many repeat (default: all),")
@click.option("--calls", type=WHOLE, metavar="N", help="calls a day,")
@click.option("--hit-rate", type=NUMBER, metavar="H", help="and the share that find the prefix (default: 1).")
@answering
def command(show: Show, *, log: str | None, **options: Any) -> None:
    """How much of the prompts in LOG is repeated, where the repetition breaks, and what caching it is worth.

    LOG is a trace with block hashes, token ids or prompts (mooncake-conv is built in). Without it, the price
    arithmetic: --prompt-tokens 1000 --calls 1M --price 3.
    """
    from servewise.ask.prefix import prefix

    show(prefix(log, **options))
