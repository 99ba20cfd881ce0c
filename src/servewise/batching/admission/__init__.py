"""Whether a sequence that waits may run: what it takes of the KV pool, and what must stay for the others."""
