"""Batching policies measured on a real model beside the simulator's prediction; the bar: p50 and p95 within 10%.

``python -m benchmarks.accuracy.policies --run-dir DIR``. Takes some ten minutes on an idle machine and goes on where it
was stopped. Below saturation every run's median and p95 latency end to end should be predicted within 10%.
"""

from __future__ import annotations

import argparse

from benchmarks.record import save, table
from servewise.ask.probe_policies import probe_policies

RATES = (1.5, 3.0, 6.0)


def main() -> None:
    """Measure, print, keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="smollm2-135m-instruct")
    parser.add_argument("--run-dir")
    parser.add_argument("--requests", type=int, default=80)
    parser.add_argument("--rates", default=",".join(map(str, RATES)))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--clock", default="undisturbed")
    given = parser.parse_args()
    answer = probe_policies(
        given.model,
        rates=[float(each) for each in given.rates.split(",")],
        requests=given.requests,
        threads=given.threads,
        clock=given.clock,
        run_dir=given.run_dir,
    )
    rows = answer.result["rows"]
    table(
        ("policy", "rate/s", "judged", "within", "e2e p50", "ratio", "e2e p95", "ratio", "use", "predicted", "waited"),
        [
            (
                row["policy"], row["rate_per_s"], row["below_saturation"], row["within"],
                row["measured"]["e2e_s"]["p50"], row["e2e_p50_ratio"],
                row["measured"]["e2e_s"]["p95"], row["e2e_p95_ratio"],
                row["measured"]["utilisation"], row["predicted"]["utilisation"], row["waited_share"],
            )
            for row in rows
        ],
    )  # fmt: skip
    save("policies", answer.to_json())


if __name__ == "__main__":
    main()
