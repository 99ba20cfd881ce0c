"""What share of its bf16 peak an accelerator reaches in a large matrix product, as published or measured.

Peaks are no common yardstick: an H100 reaches 80% of its own, an MI300X 51%, a GeForce card, whose tensor cores are
halved, 80% or more. So FLOP efficiencies that are borrowed are scaled by these shares.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files

FILE = "matmul_rates.csv"


@lru_cache(maxsize=1)
def matmul_shares() -> Mapping[str, float]:
    """Achieved / peak of a large bf16 product, by accelerator."""
    lines = files("servewise.steptime").joinpath(FILE).read_text("utf-8").splitlines()
    rows = csv.DictReader(lines)
    return {row["accelerator"]: float(row["achieved_flops_per_s"]) / float(row["peak_flops_per_s"]) for row in rows}


def borrowed_share(of: str, lender: str) -> float:
    """By how much the FLOP efficiency of ``lender`` is scaled for ``of``; 1 where either rate is not known.

    >>> round(borrowed_share("mi300x", "h200"), 2)
    0.64
    """
    shares = matmul_shares()
    return shares[of] / shares[lender] if of in shares and lender in shares else 1.0
