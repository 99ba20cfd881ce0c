"""The engines' own option lists, and launches read by them."""
