"""Speculative decoding: drafts propose tokens, one pass of the target verifies them, its distribution is kept."""
