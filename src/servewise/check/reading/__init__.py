"""Text to parts: what a file holds, told by its content."""
