"""Prices with their dates: accelerator-hours, hosted tokens, prompt-cache terms."""
