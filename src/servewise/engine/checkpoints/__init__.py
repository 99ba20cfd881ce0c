"""Checkpoints as published: safetensors folders and GGUF files; config, weights and tokenizer, read and written."""
