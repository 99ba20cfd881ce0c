"""Mistakes in how prompts are built, found in a log of them."""
