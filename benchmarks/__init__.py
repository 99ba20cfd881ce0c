"""Speed and accuracy: each benchmark is one command, e.g. `python -m benchmarks.speed.simulator`."""
