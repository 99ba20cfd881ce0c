"""What does a KV cache save on a real model, and does it change anything?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from servewise.answer import Answer
from servewise.ask.numbers import whole, wholes
from servewise.caveats import Caveat
from servewise.conditions import Conditions
from servewise.engine.checkpoint import Checkpoint, load_checkpoint
from servewise.engine.decoder.load import load_decoder
from servewise.errors import InputError
from servewise.probe.kv import CacheWork, cache_work, reply_with_cache, reply_without_cache
from servewise.probe.ops.machine import Machine, this_machine, waited_s
from servewise.probe.ops.operation import dtype_named
from servewise.version import __version__

TOKENS = (20, 40, 80, 160)
PROMPT = "The capital of France is Paris, and the capital of Germany is"
PROMPT_TOKENS = 5
EXACT = {"float64": 1e-9, "float32": 1e-3}  # largest logit differences that rounding explains, for logits of order 10


def probe_kv(
    model: str,
    *,
    tokens: int | Iterable[int] = TOKENS,
    dtypes: Sequence[str] = ("float64", "float32"),
    prompt: str = PROMPT,
    prompt_tokens: int = PROMPT_TOKENS,
    device: str = "cpu",
    threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Answer:
    """Positions processed, wall time, equal tokens and the largest logit difference, with and without a KV cache.

    A greedy reply of each of ``tokens`` lengths after the first ``prompt_tokens`` tokens of ``prompt``, in each of
    ``dtypes``; an end token does not end it. Positions are counted by the code that runs. The engine's decoder and
    paged cache compute both runs; without a cache every token is computed from all the text before it.
    """
    counts = sorted(whole(each, "tokens", most=100_000) for each in wholes(tokens, "tokens"))
    kinds = {each: dtype_named(each) for each in dtypes}
    machine, checkpoint = this_machine(device, threads), load_checkpoint(model)
    start = _prompt(checkpoint, prompt, whole(prompt_tokens, "prompt_tokens"))
    longest = counts[-1] + len(start)
    if longest > checkpoint.config.max_context_tokens:
        what = f"{longest} tokens are beyond the model's context of {checkpoint.config.max_context_tokens}"
        raise InputError(what, where="tokens", hint="ask for fewer")
    rows: list[dict[str, Any]] = []
    done = 0

    def tick() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, 2 * counts[-1] * len(kinds))

    for name, kind in kinds.items():
        decoder = load_decoder(checkpoint, dtype=kind, device=device)
        before = waited_s()
        without = reply_without_cache(decoder, start, counts[-1], tick)
        cached = reply_with_cache(decoder, start, counts[-1], tick)
        waited = _share(before, waited_s(), without.seconds[-1] + cached.seconds[-1])
        rows += [_row(name, len(start), cache_work(without, cached, count), waited) for count in counts]
    return Answer(
        command="probe-kv",
        conditions=_conditions(machine, checkpoint, counts, start, tuple(kinds)),
        result={"rows": rows, "prompt_tokens": len(start), "all_tokens_identical": _all_equal(rows)},
        caveats=_caveats(rows),
    )


def _prompt(checkpoint: Checkpoint, text: str, tokens: int) -> list[int]:
    found = checkpoint.tokenizer().encode(text)
    if len(found) < tokens:
        raise InputError(f"has {len(found)} tokens, fewer than {tokens}", where="prompt", hint="give a longer text")
    return found[:tokens]


def _row(dtype: str, prompt_tokens: int, work: CacheWork, waited: float | None) -> dict[str, Any]:
    count = work.tokens
    return {
        "dtype": dtype,
        "tokens": count,
        "positions_without_cache": work.positions_without,
        "positions_with_cache": work.positions_with,
        "closed_form_without_cache": count * prompt_tokens + count * (count - 1) // 2,
        "closed_form_with_cache": prompt_tokens + count,
        "wall_without_cache_s": work.seconds_without,
        "wall_with_cache_s": work.seconds_with,
        "speedup": work.seconds_without / work.seconds_with,
        "tokens_identical": work.equal_tokens == count,
        "equal_tokens": work.equal_tokens,
        "max_logit_difference": work.largest_difference,
        "max_logit": work.largest_logit,
        "smallest_margin": work.smallest_margin,
        "waited_share": waited,
    }


def _share(before: float | None, after: float | None, wall_s: float) -> float | None:
    return None if before is None or after is None else (after - before) / wall_s


def _all_equal(rows: Sequence[dict[str, Any]]) -> bool:
    return all(row["tokens_identical"] for row in rows)


def _conditions(
    machine: Machine, checkpoint: Checkpoint, counts: Sequence[int], start: Sequence[int], dtypes: Sequence[str]
) -> Conditions:
    return Conditions(
        hardware=f"1 x {machine}",
        load="batch 1, greedy",
        lengths=f"{len(start)} tokens in, {', '.join(map(str, counts))} out",
        precision=f"{', '.join(dtypes)}; weights stored as {checkpoint.stored}",
        model=checkpoint.config.name,
        engine=f"servewise engine, PyTorch {torch.__version__}",
        version=__version__,
    )


def _caveats(rows: Sequence[dict[str, Any]]) -> tuple[Caveat, ...]:
    found = []
    for row in rows:
        limit = EXACT.get(row["dtype"])
        if limit is not None and row["max_logit_difference"] > limit * max(1.0, row["max_logit"] / 10):
            message = f"logits differ by up to {row['max_logit_difference']:.1e} in {row['dtype']}: more than rounding"
            found.append(Caveat("not-rounding", message, "a defect: the cache must not change the result"))
        elif not row["tokens_identical"]:
            message = (
                f"in {row['dtype']} the replies part after {row['equal_tokens']} tokens, where the two best logits are "
                f"{row['smallest_margin']:.1e} apart and rounding moves logits by {row['max_logit_difference']:.1e}"
            )
            found.append(Caveat("tie", message, "compare in float64, where rounding is smaller"))
    waited = max((row["waited_share"] or 0.0 for row in rows), default=0.0)
    if waited > 0.02:
        message = f"other programs made the threads wait for {waited:.0%} of the wall time: times are too long"
        found.append(Caveat("disturbed", message, "measure on an idle machine; positions and logits are not affected"))
    return tuple(dict.fromkeys(found))
