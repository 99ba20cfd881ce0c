"""Charts: pure functions from data to SVG text, one file each, drawn by matplotlib without pyplot."""
