"""Keys and values in blocks."""
