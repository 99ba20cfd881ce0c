"""White-box questions on a real checkpoint: cache equivalence, acceptance, quantisation quality, operation times."""
