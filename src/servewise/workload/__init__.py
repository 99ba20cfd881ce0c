"""Requests: when they arrive, how long they are, what they share; synthetic or from a trace."""
