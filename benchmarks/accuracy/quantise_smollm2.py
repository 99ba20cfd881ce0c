"""What do fewer bits cost a trained model: weights, KV cache and activations of SmolLM2-135M-Instruct?

Question: the study's quantisation table is of a tiny random model. How does a trained one bear fewer bits, does its
cache bear fewer than its weights, and what do groups, offsets, keys by channel and error compensation bring?

Method: ``servewise probe quantise`` on the built-in text: 12 sequences of 128 tokens spread over it, float32, KL and
top-1 agreement with the checkpoint as it is. The checkpoint is a GGUF in Q4_1 (4 bits, groups of 32, asymmetric): that
very grid cannot lose, nor 8 bits in the same groups (its 255 steps divide by 15), and others lose less than they would
on the original weights. GPTQ is calibrated on the other built-in text (1,700 tokens, little).

Run: python -m benchmarks.accuracy.quantise_smollm2 [LOG] (some 12 minutes of one core; LOG resumes a run broken off)
"""

from __future__ import annotations

import sys
from typing import Any

from benchmarks.record import save, table
from servewise.ask.probe_quantise import probe_quantise

MODEL = "smollm2-135m-instruct"
COMMON: dict[str, Any] = {"sequences": 12, "length": 128, "threads": 1}
SYMMETRIC, ASYMMETRIC = ("symmetric",), ("asymmetric",)
CASES: tuple[dict[str, Any], ...] = (
    {"targets": ("weights",), "methods": ("rtn",), "grids": SYMMETRIC, "groups": ("channel",)},
    {"targets": ("weights",), "methods": ("rtn",), "groups": ("32",)},
    {"targets": ("weights",), "methods": ("rtn",), "grids": SYMMETRIC, "groups": ("128", "64"), "bits": 4},
    {"targets": ("weights",), "methods": ("gptq",), "grids": SYMMETRIC, "groups": ("channel", "32"), "bits": 4},
    {"targets": ("weights",), "methods": ("gptq",), "grids": ASYMMETRIC, "groups": ("32",), "bits": 3},
    {"targets": ("kv",), "grids": SYMMETRIC, "groups": ("channel",), "keys": ("token",)},
    {"targets": ("kv",), "grids": ASYMMETRIC, "groups": ("channel",), "keys": ("channel",)},
    {"targets": ("kv",), "grids": ASYMMETRIC, "groups": ("channel",), "keys": ("token",), "bits": (4, 3)},
    {"targets": ("activations",)},
)


def main() -> None:
    """Print the table and keep it."""
    log = sys.argv[1] if len(sys.argv) > 1 else None
    answers = [probe_quantise(MODEL, resume=log, **COMMON, **case) for case in CASES]
    rows = [row for answer in answers for row in answer.result["rows"]]
    study = [row for answer in answers for row in answer.result["study"]]
    table(
        ("target", "bits", "group", "grid", "method", "keys", "KL", "top-1", "perplexity ratio"),
        [
            (
                *(row[name] for name in ("target", "bits", "group", "grid", "method")),
                row["keys"] or "",
                *(row[name] for name in ("kl", "top1_agreement", "perplexity_ratio")),
            )
            for row in rows
        ],
    )
    first = answers[0]
    save(
        "quantise_smollm2",
        {
            "conditions": first.conditions.to_json(),
            "caveats": [caveat.to_json() for caveat in first.caveats],
            "reference": first.result["reference"],
            "study": study,
            "rows": rows,
        },
    )


if __name__ == "__main__":
    main()
