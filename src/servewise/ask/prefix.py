"""How much of the prompts is repeated, where the repetition breaks, and what caching it is worth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from servewise.answer import Answer
from servewise.ask.numbers import finite, positive, share, whole
from servewise.ask.serving import Load, WorkloadLike, caveats_of
from servewise.caveats import Caveat, unique
from servewise.conditions import Conditions
from servewise.errors import InputError, UnknownName
from servewise.pricing.cache_terms import CacheTerms, find_terms
from servewise.techniques.prefix import PromptBill, counted_bill, hit_rate_at, prompt_bill
from servewise.techniques.reuse import BlockStore, Break, Reuse, count_reuse
from servewise.units import DAY_S
from servewise.version import __version__
from servewise.workload.load import load_workload
from servewise.workload.request import Request
from servewise.workload.synthetic import ClosedLoop

SHOWN_BREAKS = 20
DEPTHS = 16
CAPACITIES = 8
TOKENIZERS = ("characters",)
DEFAULT_TERMS = "tenth"
TENTH = CacheTerms(name="tenth", title="cached input at a tenth of the price", write_multiplier=1, read_multiplier=0.1)
Progress = Any


def prefix(
    log: WorkloadLike | None = None,
    *,
    tokenizer: str = "characters",
    block: int | None = None,
    ttl: float | None = None,
    capacity: int | None = None,
    price: float | None = None,
    terms: str | CacheTerms = DEFAULT_TERMS,
    prompt_tokens: int | None = None,
    prefix_tokens: int | None = None,
    calls: int | None = None,
    hit_rate: float | None = None,
) -> Answer:
    """What a prefix cache finds in ``log``, a trace whose prompts are given as block hashes, token ids or text.

    ``block`` [tokens]: the cache's blocks, where the trace does not fix them; ``ttl`` [s]: life of a block from its
    last use; ``capacity`` [tokens]: least recently used blocks make room; None: endless. ``price``: dollars per million
    input tokens; ``terms``: a hosted cache's terms by name, default a tenth of the price for cached input. Text is cut
    at 4 characters a token (``tokenizer`` characters); give token ids for exact blocks.

    Without ``log``: the arithmetic alone, for ``calls`` a day of ``prompt_tokens``, of which ``prefix_tokens`` repeat
    and ``hit_rate`` of the calls (None: all) find them.
    """
    if tokenizer not in TOKENIZERS:
        hint = "give token ids as prompt for exact blocks; text is cut at 4 characters a token"
        raise UnknownName("tokenizer", str(tokenizer), TOKENIZERS, where="tokenizer", hint=hint)
    agreed = terms if isinstance(terms, CacheTerms) else TENTH if terms == DEFAULT_TERMS else find_terms(terms)
    usd = None if price is None else _price(price)
    if log is None:
        return _arithmetic(prompt_tokens, prefix_tokens, calls, 1.0 if hit_rate is None else hit_rate, usd, agreed)
    if any(each is not None for each in (prompt_tokens, prefix_tokens, calls, hit_rate)):
        raise InputError(
            "give either a trace, or prompt_tokens and calls", where="prefix", hint="the trace says the rest"
        )
    lives = positive(ttl, "ttl") if ttl is not None else agreed.ttl_s if terms != DEFAULT_TERMS else None
    return _counted(_load(log, block), lives, None if capacity is None else whole(capacity, "capacity"), usd, agreed)


def _price(price: float) -> float:
    if finite(price, "price") < 0:
        raise InputError(f"must be zero or more, not {price!r}", where="price", hint="dollars per million input tokens")
    return float(price)


def _load(log: WorkloadLike, block: int | None) -> Load:
    size = None if block is None else whole(block, "block")
    load = load_workload(log, block_tokens=size) if isinstance(log, str) else log
    if load.hash_block_tokens is None:
        raise InputError(
            "says nothing of what prompts share",
            where=load.title,
            hint="a trace with block hashes, token ids or prompts is needed",
        )
    return load


def _counted(load: Load, ttl_s: float | None, capacity: int | None, usd: float | None, terms: CacheTerms) -> Answer:
    requests = list(load.shapes(0) if isinstance(load, ClosedLoop) else load.requests(0))
    block_tokens = load.hash_block_tokens or 1
    blocks = None if capacity is None else max(1, capacity // block_tokens)
    found = count_reuse(requests, block_tokens, capacity_blocks=blocks, ttl_s=ttl_s)
    bill = _bill(found, usd, terms)
    return Answer(
        command="prefix",
        conditions=_conditions(
            load=f"{found.requests} requests in order, one after another",
            lengths=f"mean {found.prompt_tokens / max(found.requests, 1):,.0f} tokens in, blocks of {block_tokens}",
            hardware=_cache_words(capacity, ttl_s),
            workload=load.title,
        ),
        result={
            "requests": found.requests,
            "prompt_tokens": found.prompt_tokens,
            "reusable_tokens": found.reusable_tokens,
            "hit_rate": found.hit_rate,
            "breaks": [_break(each) for each in found.breaks[:SHOWN_BREAKS]],
            "cost_usd": bill and bill.cost_usd,
            "cost_with_cache_usd": bill and bill.cost_with_cache_usd,
            "block_tokens": block_tokens,
            "distinct_tokens": found.distinct_blocks * block_tokens,
            "terms": terms.title,
            "reuse_by_depth": reuse_by_depth(requests, block_tokens, blocks, ttl_s),
            "by_capacity": reuse_by_capacity(requests, block_tokens, found.distinct_blocks, ttl_s),
        },
        caveats=unique((*caveats_of(load), *_hosted_caveats(terms, usd))),
    )


def reuse_by_depth(
    requests: Sequence[Request], block_tokens: int, capacity_blocks: int | None, ttl_s: float | None
) -> list[dict[str, float]]:
    """At each depth in the prompt, the share of the prompts that reach it whose block there is found."""
    store = BlockStore(capacity_blocks, ttl_s)
    reach: dict[int, int] = {}
    hits: dict[int, int] = {}
    for request in requests:
        hashes = request.prompt_hashes(block_tokens)
        found, total = store.leading(hashes, request.arrival_s), len(hashes)
        reach[total] = reach.get(total, 0) + 1
        hits[found] = hits.get(found, 0) + 1
        store.use(request.block_hashes, request.arrival_s)
    deepest = max(reach, default=0)
    depths = sorted({round(deepest * (step / DEPTHS) ** 2) for step in range(DEPTHS)})
    rows = ((depth, _above(hits, depth), _above(reach, depth)) for depth in depths)
    return [
        {"offset_tokens": depth * block_tokens, "hit_rate": found / there, "requests": there}
        for depth, found, there in rows
        if there
    ]


def reuse_by_capacity(
    requests: Sequence[Request], block_tokens: int, distinct_blocks: int, ttl_s: float | None
) -> list[dict[str, float]]:
    """The hit rate of caches from a hundredth of the distinct blocks up to all of them, by doubling."""
    sizes = sorted({max(1, distinct_blocks >> shift) for shift in range(CAPACITIES)})
    rates = (count_reuse(requests, block_tokens, capacity_blocks=size, ttl_s=ttl_s).hit_rate for size in sizes)
    return [{"capacity_tokens": size * block_tokens, "hit_rate": rate} for size, rate in zip(sizes, rates, strict=True)]


def _above(counts: dict[int, int], depth: int) -> int:
    return sum(count for value, count in counts.items() if value > depth)


def _break(each: Break) -> dict[str, Any]:
    after = "at the first token" if each.after is None else f"after block {each.after:x}"
    return {
        "offset_tokens": each.offset_tokens,
        "kind": each.kind,
        "requests": each.requests,
        "lost_tokens": each.lost_tokens,
        "example_redacted": after,
    }


def _bill(found: Reuse, usd: float | None, terms: CacheTerms) -> PromptBill | None:
    if usd is None:
        return None
    return counted_bill(
        prompt_tokens=found.prompt_tokens, reusable_tokens=found.reusable_tokens, usd_per_million=usd, terms=terms
    )


def _arithmetic(
    prompt_tokens: int | None,
    prefix_tokens: int | None,
    calls: int | None,
    hit_rate: float,
    usd: float | None,
    terms: CacheTerms,
) -> Answer:
    if prompt_tokens is None or calls is None or usd is None:
        raise InputError("give a trace, or prompt_tokens, calls and price", where="prefix")
    whole(prompt_tokens, "prompt_tokens", most=10**9)
    whole(calls, "calls", most=10**12)
    share(hit_rate, "hit_rate")
    if prefix_tokens is not None:
        whole(prefix_tokens, "prefix_tokens", least=0, most=prompt_tokens)
    repeating = "all" if prefix_tokens is None else f"{prefix_tokens:,}"
    bill = prompt_bill(
        prompt_tokens=prompt_tokens,
        calls=calls,
        usd_per_million=usd,
        terms=terms,
        hit_rate=hit_rate,
        prefix_tokens=prefix_tokens,
    )
    return Answer(
        command="prefix",
        conditions=_conditions(
            load=f"{calls:,} calls a day",
            lengths=f"{prompt_tokens:,} tokens in, {repeating} repeat",
            hardware=f"hosted, {terms.title}",
            workload=None,
        ),
        result={
            "requests": calls,
            "prompt_tokens": bill.prompt_tokens,
            "reusable_tokens": bill.cached_tokens,
            "hit_rate": hit_rate,
            "breaks": [],
            "cost_usd": bill.cost_usd,
            "cost_with_cache_usd": bill.cost_with_cache_usd,
            "saved_usd": bill.saved_usd,
            "terms": terms.title,
            "hit_rate_at_this_load": hit_rate_at(calls / DAY_S, terms),
        },
        caveats=_hosted_caveats(terms, usd),
    )


def _hosted_caveats(terms: CacheTerms, usd: float | None) -> tuple[Caveat, ...]:
    if usd is None:
        return ()
    if not terms.date:
        message = "cached input is taken at a tenth of the price, writing at no extra: not a quoted price"
        return (Caveat("assumed-terms", message, "name your provider's with --terms"),)
    return (Caveat("dated-terms", f"terms of {terms.title} as of {terms.date}", "check the current ones"),)


def _conditions(*, load: str, lengths: str, hardware: str, workload: str | None) -> Conditions:
    return Conditions(
        hardware=hardware, load=load, lengths=lengths, precision="any precision", workload=workload, version=__version__
    )


def _cache_words(capacity: int | None, ttl_s: float | None) -> str:
    size = "endless prefix cache" if capacity is None else f"prefix cache of {capacity:,} tokens"
    return size + (f", blocks live {ttl_s:g} s" if ttl_s is not None else "")
