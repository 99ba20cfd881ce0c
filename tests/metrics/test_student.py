"""Student's t."""

from __future__ import annotations

import pytest
from scipy import stats

from servewise.metrics.student import t_quantile


@pytest.mark.parametrize("probability", [0.025, 0.5, 0.6, 0.9, 0.975, 0.995, 0.9995])
def test_quantiles_agree_with_scipy(probability: float) -> None:
    """For 1 to 1,000 degrees of freedom the quantile is SciPy's to 1e-10."""
    for degrees in (*range(1, 40), 99, 100, 1000):
        assert t_quantile(probability, degrees) == pytest.approx(
            stats.t.ppf(probability, degrees), rel=1e-10, abs=1e-12
        )


@pytest.mark.parametrize(("probability", "degrees"), [(0.975, 0), (1.0, 3), (0.0, 3)])
def test_what_has_no_quantile_is_refused(probability: float, degrees: int) -> None:
    """No degrees of freedom, or a probability of 0 or 1, has none."""
    with pytest.raises(ValueError):
        t_quantile(probability, degrees)
