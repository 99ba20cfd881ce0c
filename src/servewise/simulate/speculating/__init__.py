"""Speculation in simulated time: what drafting costs, what it takes of the memory, how many tokens it pays to draft."""
