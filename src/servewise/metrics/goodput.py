"""Goodput: how many requests per second met what the SLO asks of one request.

After DistServe (Zhong et al. 2024, section 1): a request counts if it meets its TTFT and its TPOT bound. The percentile
of a bound says what share must; for one request only the bound counts, whatever its percentile.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from servewise.metrics import latency
from servewise.metrics.slo import Slo
from servewise.records.columns import COMPLETED, RequestColumns


def attained(requests: RequestColumns, slo: Slo) -> NDArray[np.bool_]:
    """Which rows met the SLO: completed, and each latency within its limit.

    TTFT, TPOT and end-to-end are the request's own; ITL is judged by the request's mean gap, which is its TPOT. An
    answer of one token has no TPOT and keeps every bound on it.
    """
    met: NDArray[np.bool_] = latency.ints(requests.status) == COMPLETED
    met &= latency.ttft(requests) <= slo.limit_s("ttft")
    met &= latency.e2e(requests) <= slo.limit_s("e2e")
    met &= ~(latency.tpot(requests) > min(slo.limit_s("tpot"), slo.limit_s("itl")))
    return met
