"""Recorded traffic: a table of layouts, two readers, and the trace that they fill."""
