"""How much of the prompts is repeated, and where do prompts break it?"""

from __future__ import annotations

from servewise.app.field import Field
from servewise.app.view import View

CACHE = "Cache"
LOG = Field(
    name="log",
    label="Prompt log",
    argument=True,
    kind="name",
    default="mooncake-conv",
    suggest="logs",
    accept=".jsonl,.json,.csv,.gz",
    hint="JSONL, a request a line: arrival_s, prompt_tokens, output_tokens, and prompt (text or token ids) or "
    "block_hashes.",
    group="Prompts",
)
BLOCK = Field(
    name="block",
    label="Tokens a block",
    option="--block",
    kind="number",
    hint="Where the log does not fix them.",
    group=CACHE,
)
TTL = Field(name="ttl", label="Life of a block", option="--ttl", hint="E.g. 5min; empty: endless.", group=CACHE)
CAPACITY = Field(
    name="capacity",
    label="Cache size (tokens)",
    option="--capacity",
    hint="E.g. 500k; empty: endless.",
    group=CACHE,
)
PRICE = Field(name="price", label="$ per million input tokens", option="--price", default="3", group="Cost")
TERMS = Field(
    name="terms",
    label="Terms of the cache",
    option="--terms",
    default="tenth",
    hint="E.g. anthropic-5m.",
    group="Cost",
)

PREFIX = View(
    name="prefix",
    title="Prefix",
    question="How much of the prompts is repeated, where do prompts break it, and what is it worth?",
    command="prefix",
    fields=(LOG, BLOCK, TTL, CAPACITY, PRICE, TERMS),
    slow=True,
)
