"""What a model is, as arithmetic needs it: parameters, KV bytes per token and FLOPs per token from its config."""
