"""Mistakes in how an engine is launched: one file a subject."""
