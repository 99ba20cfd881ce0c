"""Whether a load has more requests under way than an estimator was fitted on."""

from __future__ import annotations

from servewise.caveats import Caveat
from servewise.metrics.summary import RunSummary
from servewise.steptime.coefficients import ValidRange
from servewise.steptime.estimator import Estimator
from servewise.steptime.lookup import OUTSIDE


def beyond_fitted(estimator: Estimator, summary: RunSummary) -> tuple[Caveat, ...]:
    """A caveat where more requests are under way (rate x mean time, Little's law) than the fit has seen."""
    valid: ValidRange | None = getattr(estimator, "valid_range", None)
    under_way = summary.requests_per_s * summary.e2e.mean
    if valid is None or not under_way > valid.decode_sequences[1]:
        return ()
    most = valid.decode_sequences[1]
    message = (
        f"about {under_way:.0f} requests are under way at {summary.requests_per_s:.3g} requests/s; fitted on {most}"
    )
    return (Caveat(OUTSIDE, f"{message} at most", f"calibrate on {under_way:.0f} streams or more, or lower the rate"),)
