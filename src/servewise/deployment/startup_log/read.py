"""A start-up log's text -> StartupFacts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from servewise.deployment.startup_log import llamacpp, sglang, vllm
from servewise.deployment.startup_log.facts import StartupFacts
from servewise.deployment.startup_log.patterns import Pattern, Value, match_all, plain_lines, reduced
from servewise.errors import InputError

ENGINES: Mapping[str, tuple[Pattern, ...]] = {
    "vllm": vllm.PATTERNS,
    "sglang": sglang.PATTERNS,
    "llamacpp": llamacpp.PATTERNS,
}
MEMORY_FACTS = frozenset(
    {"weight_bytes", "kv_bytes", "k_bytes", "whole_kv_bytes", "kv_tokens", "blocks", "needed_kv_bytes"}
)
MOST_BYTES = 4 * 2**20  # some 30,000 lines: a start, not what was served after it


def read_startup_log(path: str | Path) -> StartupFacts:
    """The facts of the log in that file, its first 4 MiB.

    Raises InputError for a file that cannot be read or in which nothing is recognised.
    """
    try:
        with Path(path).open("rb") as file:
            raw = file.read(MOST_BYTES)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a file name"
        raise InputError(f"cannot read the log: {reason}", where=str(path), hint="give a text file") from error
    return parse_startup_log(raw.decode("utf-8", errors="replace"), where=str(path))


def parse_startup_log(text: str, *, where: str = "log") -> StartupFacts:
    """The facts that ``text`` states, of the engine whose memory lines it holds most of.

    Prefixes, timestamps and colours do not matter. Raises InputError where no line about memory is recognised.
    """
    lines = [line for line in plain_lines(text) if line.strip()]
    read = {engine: match_all(patterns, lines) for engine, patterns in ENGINES.items()}
    engine = max(read, key=lambda name: _memory_lines(read[name]))
    if not _memory_lines(read[engine]):
        raise InputError(
            "no line about weights or KV cache of vLLM, SGLang or llama.cpp",
            where=where,
            hint="give the log from the engine's start on",
        )
    return _facts(engine, reduced(ENGINES[engine], read[engine]), sum(map(len, read[engine].values())))


def _memory_lines(found: Mapping[str, list[Value]]) -> int:
    return sum(len(values) for fact, values in found.items() if fact in MEMORY_FACTS)


def _facts(engine: str, found: dict[str, Value], lines: int) -> StartupFacts:
    facts: dict[str, Any] = {**found, "engine": engine, "lines": lines}
    if "k_bytes" in facts and "v_bytes" in facts:
        facts.setdefault("kv_bytes", facts["k_bytes"] + facts["v_bytes"])
    if "whole_kv_bytes" in facts:
        facts.setdefault("kv_bytes", facts["whole_kv_bytes"])
    if "peak_torch_bytes" in facts and "weight_bytes" in facts:
        facts.setdefault("activation_bytes", facts["peak_torch_bytes"] - facts["weight_bytes"])
    if "n_ctx" in facts:
        facts.setdefault("kv_tokens", facts["n_ctx"])
        facts.setdefault("max_context_tokens", facts["n_ctx"] // max(1, facts.get("max_sequences", 1)))
    known = {field.name for field in fields(StartupFacts)}
    return StartupFacts(**{name: value for name, value in facts.items() if name in known})
