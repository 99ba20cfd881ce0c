"""What a quantised build changes, seen over the API: the tokens that two servers give, and their probabilities."""
