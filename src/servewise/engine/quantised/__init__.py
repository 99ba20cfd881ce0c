"""Fewer bits: weights, KV cache and activations on integer grids, packed where a kernel runs them."""
