"""The study's tables again, from the product's own rooms."""
