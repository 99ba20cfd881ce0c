"""Mistakes in claims and benchmark results."""
