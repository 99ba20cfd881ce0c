"""Which conditions a document states beside its figures."""

from __future__ import annotations

import re

STATED = {
    "hardware": re.compile(
        r"\b(?:[AHBVP](?:10|16|20|30|40|100|200|300|800)S?(?: ?SXM\d?| ?PCIe| ?NVL\d*)?|L4|L40S?|A10G?|T4|"
        r"GH?B?[23]00|GB10|RTX|"
        r"GTX|MI\d{3}X?|TPU|"
        r"Gaudi|Inferentia|Trainium|Xeon|EPYC|Ryzen|Zen ?\d|Core i\d|Apple M\d|M[1-4] (?:Max|Ultra|Pro)|"
        r"Jetson|Radeon|"
        r"GeForce|Quadro|\d+ (?:CPU )?cores)\b",
        re.I,
    ),
    "load": re.compile(
        r"\bbatch(?:[ _-]size)?s?\b\D{0,12}\d|\d+[- ](?:concurrent|streams?|users|clients|sequences|"
        r"parallel)|concurren\w*|"
        r"\bQPS\b|\bRPS\b|request[ _-]?rate|req(?:uest)?s? ?(?:/|per) ?s|\bnum[_-]prompts\b|closed loop|poisson|"
        r"\bbs ?=|\bbs ?\d",
        re.I,
    ),
    "lengths": re.compile(
        r"\b(?:ISL|OSL)\b|(?:input|output|prompt|sequence|context|generation)[ _-]?(?:len(?:gth)?s?|tokens?|size)\b|"
        r"\d[\d,]*k?[ -]?(?:input|output|prompt|token)s?\b(?! ?(?:/|per) ?s)|(?:prompts?|contexts?|inputs?|"
        r"outputs?|answers?|"
        r"replies) of [\d,]+|\d+k? (?:in|out)\b|\d+ ?/ ?\d+ tokens|sharegpt|total (?:input|generated) "
        r"tokens|context \d",
        re.I,
    ),
    "precision": re.compile(
        r"\b(?:fp ?\d{1,2}|bf ?16|float(?:16|32)|bfloat16|half precision|int ?\d|awq|gptq|gguf|nvfp4|mxfp\d|"
        r"[qQ]\d_[\w]+|"
        r"\d+[- ]bits?|w\d+a\d+|bitsandbytes|unquanti[sz]ed|e4m3|e5m2)\b",
        re.I,
    ),
}
COMMAND = re.compile(
    r"vllm bench|servewise |guidellm|benchmark_serving|aiperf|genai-perf|llama-bench|trtllm-bench|bench_serving|"
    r"inference-perf|llama-benchy|locust|wrk |k6 run|^\s*\$ |```(?:bash|sh|shell|console)|python3? -m|\"command\"",
    re.I | re.M,
)
SPREAD = re.compile(
    r"±|\+/-|\bCI\b|confidence|interval|std(?:ev|dev|\.)|standard deviation|variance|\b(?:runs|repeats|"
    r"repeated|repetitions|"
    r"trials|seeds|replicates)\b|iqr|min.{0,10}max",
    re.I,
)
PERCENTILE = re.compile(r"\bp ?\d{2}\b|percentile|median|\b9[059]th\b|p50", re.I)
MEAN = re.compile(r"\b(?:mean|average|avg)\b", re.I)
EVALUATION = re.compile(
    r"\b(?:mmlu|gsm8k|humaneval|perplexity|ppl|arc[- ]?[ce]|hellaswag|truthfulqa|ifeval|gpqa|aime|mt-?bench|"
    r"lm[_-]eval|evals?|"
    r"evaluat\w+|ruler|longbench|kl[- ]divergence|exact match|accuracy (?:of|is|was)|swe-?bench|livecodebench)\b",
    re.I,
)


def missing(text: str) -> tuple[str, ...]:
    """The conditions that ``text`` does not state."""
    return tuple(name for name, pattern in STATED.items() if not pattern.search(text))
