"""How far simulated servers are from real ones: python -m benchmarks.accuracy.e2e_measured.

Mean TTFT and TPOT of 657 points (models, accelerators, engines, loads) that ``fit_server_overheads`` did not fit on,
beside a peer's predictions of the same; writes benchmarks/results/e2e_measured.json.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from benchmarks.accuracy.e2e_measured.judge import all_judged
from benchmarks.accuracy.e2e_measured.summary import BREAKDOWNS, result
from benchmarks.record import save

HEAD = f"  {'':56}{'':>7}{'TTFT error':>28}{'TPOT error':>27}{'the peer (ours there)':>30}\n"
HEAD += f"  {'':56}{'points':>7}" + f"{'median':>10}{'p90':>9}{'signed':>9}" * 2 + f"{'TTFT':>16}{'TPOT':>14}\n"


def line(name: str, numbers: Mapping[str, float]) -> str:
    """One row of the page."""
    cells = "".join(
        f"{numbers[f'{what}_median']:>10.1%}{numbers[f'{what}_p90']:>9.1%}{numbers[f'{what}_signed']:>9.1%}"
        for what in ("ttft", "tpot")
    )
    peer = "".join(
        f"{numbers[f'peer_{what}_median']:>9.0%} ({numbers[f'ours_there_{what}_median']:.0%})"
        for what in ("ttft", "tpot")
        if numbers["peer_points"]
    )
    return f"  {name:56}{numbers['points']:>7,.0f}{cells}  {peer}\n"


def page(found: Mapping[str, Any]) -> str:
    """The result as text."""
    lines = []
    for name, each in found["sets"].items():
        bar = found["bar"]
        verdict = "met" if each["meets_bar"] else "MISSED"
        lines.append(
            f"\n{name}: bar TPOT {bar['tpot_median']:.0%}, TTFT {bar['ttft_median']:.0%} (medians): {verdict}\n{HEAD}"
        )
        lines.append(line("all", each["overall"]))
        for by in BREAKDOWNS:
            if by in each:
                lines.append(f"  by {by}\n")
                lines += [line("  " + part, numbers) for part, numbers in each[by].items()]
        waits = each["where_waiting_dominates"]
        lines.append(
            f"  waiting is most of the predicted TTFT at {waits['points']:.0%} of points, which hold "
            f"{waits['of_error_in_seconds']:.0%} of its error in seconds, {waits['of_relative_error']:.0%} relative\n"
        )
    return "".join(lines)


def main() -> None:
    """Judge, print, write."""
    found = result(all_judged())
    sys.stdout.write(page(found))
    save("e2e_measured", found)


if __name__ == "__main__":
    main()
