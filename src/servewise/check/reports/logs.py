"""Signs of preemption in an engine's log."""

from __future__ import annotations

import re
from collections.abc import Iterator

from servewise.check.finding import Finding, Place, found

SIGNS = (
    (re.compile(r"is preempted by PreemptionMode\.(?:RECOMPUTE|SWAP)"), "vLLM preempted a sequence"),
    (re.compile(r"KV cache pool is full\. Retract requests"), "SGLang retracted requests"),
    (re.compile(r"Decode out of memory happened"), "SGLang retracted requests"),
    (re.compile(r"vllm:num_preemptions(?:_total)?(?:\{[^}]*\})? (?!0(?:\.0)?\s*$)[\d.e+]+"), "vLLM counts preemptions"),
    (re.compile(r"failed to find free space in the KV cache"), "llama.cpp found no free KV cells"),
)


def check_log(text: str) -> Iterator[Finding]:
    """One finding for each kind of sign: where it first stands and how often."""
    seen: dict[str, tuple[Place, int]] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        for pattern, words in SIGNS:
            match = pattern.search(line)
            if match:
                place, count = seen.get(words, (Place(number, match.start() + 1, match.group()[:60]), 0))
                seen[words] = (place, count + 1)
    for words, (place, count) in seen.items():
        times = "once" if count == 1 else f"{count:,} times"
        yield found("preemption-seen", place, f"{words} {times}: the KV pool ran out.", times=count)
