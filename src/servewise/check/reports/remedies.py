"""A complaint about one latency met with a fix for the other."""

from __future__ import annotations

import re
from collections.abc import Iterator

from servewise.check.finding import Finding, found
from servewise.check.reports.figures import Paragraph, paragraphs

BAD = (
    r"(?:too )?(?:high|slow|long|bad|poor|terrible|large|unacceptable|complain\w*|hurts?|wait\w*|improve|"
    r"reduce|lower|fix|cut)"
)
TTFT = r"(?:ttft|time[- ]to[- ]first[- ]token|first[- ]token)"
TPOT = (
    r"(?:tpot|itl|inter[- ]token|time per output token|per[- ]token latency|token[- ]by[- ]token|decod(?:e|"
    r"ing) speed)"
)
ACTION = re.compile(
    r"\b(?:so we|therefore|fix(?:ed)?|solution|solve\w*|we (?:added|enabled|switched|turned|plan|will|"
    r"use[d]?|moved|quantis|quantiz|"
    r"want)|enable[ds]?|enabling|switch(?:ed|ing)?|turn(?:ed)? on|to (?:reduce|improve|cut|lower)|by "
    r"(?:using|adding|enabling)|"
    r"add(?:ed|ing)?|recommend\w*|try)\b",
    re.I,
)
TPOT_FIX = re.compile(
    r"speculat(?:ive|ion)|draft model|\beagle\b|medusa|\bMTP\b|kv[- ]cache quanti[sz]|fp8 kv|weight[- ]only|"
    r"\bawq\b|\bgptq\b|int4|"
    r"4-bit weights|cuda graphs?|faster decod",
    re.I,
)
TTFT_FIX = re.compile(
    r"prefix[- ]cach|prompt[- ]cach|(?:larger|bigger|higher|raise\w*|increas\w*) (?:the "
    r")?(?:max_num_batched_tokens|token budget|chunk)|"
    r"faster prefill|shorter prompts?|radix cache|context cach",
    re.I,
)
HELPS_FIRST = re.compile(
    r"prefix|prompt[- ]cach|more replicas|scal(?:e|ing) out|chunk|token budget|batched.tokens|queue|"
    r"admission|disaggregat|prefill|"
    r"tensor[- ]parallel|faster (?:gpu|accelerator)|shorter prompt",
    re.I,
)
HELPS_LATER = re.compile(
    r"specul|quanti[sz]|fewer bits|smaller batch|max[-_ ]num[-_ ]seqs|fp8|int4|awq|gptq|tensor[- ]parallel|"
    r"bandwidth|chunk|"
    r"disaggregat|smaller max_num_batched",
    re.I,
)


def check_remedies(text: str) -> list[Finding]:
    """Every paragraph of ``text`` that meets a complaint with the other's fix."""
    return [finding for part in paragraphs(text) for finding in _paragraph(part)]


def _paragraph(part: Paragraph) -> Iterator[Finding]:
    first, later = _complaint(TTFT, part.text), _complaint(TPOT, part.text)
    if ACTION.search(part.text) is None:
        return
    fix = TPOT_FIX.search(part.text)
    if first and not later and fix and not HELPS_FIRST.search(part.text):
        why = f"{first.group().strip()!r}, and the fix is {fix.group()!r}, which makes decoding faster."
        yield found("tpot-fix-for-ttft", part.place(fix.start(), fix.group()), why)
    fix = TTFT_FIX.search(part.text)
    if later and not first and fix and not HELPS_LATER.search(part.text.replace(fix.group(), "")):
        why = f"{later.group().strip()!r}, and the fix is {fix.group()!r}, which makes prefill faster."
        yield found("ttft-fix-for-tpot", part.place(fix.start(), fix.group()), why)


def _complaint(metric: str, text: str) -> re.Match[str] | None:
    return re.search(rf"\b{BAD}\b[^.\n]{{0,40}}\b{metric}\b|\b{metric}\b[^.\n]{{0,60}}\b{BAD}\b", text, re.I)
