"""Batching policies measured on a real model, beside the simulator's prediction from the engine's own step times."""
