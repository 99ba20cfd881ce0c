"""Fit a step-time estimator to runs: coefficients with intervals, held-out error, valid range."""
