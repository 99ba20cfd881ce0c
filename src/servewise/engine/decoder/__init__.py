"""The network: a decoder of the Llama family, computed step by step over a paged cache."""
