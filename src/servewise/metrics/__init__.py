"""Latency, goodput, utilisation and their intervals, each defined once for simulated and measured runs."""
