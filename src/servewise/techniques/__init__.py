"""Closed forms of the techniques: speculation, quantisation's bytes, prefix reuse."""
