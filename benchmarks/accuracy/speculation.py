"""Predicted against measured speed-up of speculative decoding on the small real model, by draft, K and batch.

``python -m benchmarks.accuracy.speculation --draft ngram --resume part.jsonl``: the probe that users have, on prompts
of our own (benchmarks/data); prints the table and the error of the prediction, and keeps the whole answer.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.record import save, table
from servewise.ask.probe_speculate import probe_speculate

PROMPTS = Path(__file__).parent.parent / "data" / "speculation_prompts.jsonl"
COLUMNS = (
    "batch",
    "k",
    "tokens_per_verification",
    "verify_steps",
    "speedup_predicted",
    "speedup_predicted_timed",
    "speedup",
    "identical_outputs",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="smollm2-135m-instruct")
    parser.add_argument("--draft", required=True)
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 8])
    for name, default in (("max-tokens", 32), ("speed-prompts", 2), ("repeats", 3), ("threads", 1)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--resume")
    asked = vars(parser.parse_args())
    answer = probe_speculate(asked.pop("model"), prompts=PROMPTS, **asked)
    rows = answer.result["rows"]
    table(COLUMNS, [[row.get(name, "") for name in COLUMNS] for row in rows])
    for each in answer.result["by_batch"]:
        print({name: round(value, 3) for name, value in each.items() if isinstance(value, (int, float))})
    print("turn to loss:", answer.result["turn_to_loss"])
    errors = prediction_errors(rows)
    print(errors)
    for caveat in answer.caveats:
        print(f"{caveat.code}: {caveat.message}")
    name = f"speculation_{asked['draft'].replace(':', '_')}_{asked['dtype']}"
    save(name, {"prediction": errors, "answer": answer.to_json()})


def prediction_errors(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Relative errors of the predicted speed-up, and how often it is on the right side of 1."""
    drafted = [row for row in rows if row["k"]]
    errors = [abs(row["speedup_predicted_timed"] / row["speedup"] - 1) for row in drafted]
    signs = [math.log(row["speedup_predicted_timed"] / row["speedup"]) for row in drafted]
    same_side = [(row["speedup_predicted_timed"] > 1) == (row["speedup"] > 1) for row in drafted]
    return {
        "median_error": median(errors),
        "largest_error": max(errors),
        "mean_bias": math.expm1(sum(signs) / len(signs)),
        "gain_or_loss_right_share": sum(same_side) / len(same_side),
        "rows": len(drafted),
    }


if __name__ == "__main__":
    main()
