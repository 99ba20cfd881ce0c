"""Real vLLM servers' runs, simulated request by request."""
