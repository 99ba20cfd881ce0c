"""Accelerators and links: what the vendor says, what was measured, each value with its source."""
