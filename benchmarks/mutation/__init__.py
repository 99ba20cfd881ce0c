"""Mutation testing: would the tests notice if a line of a room were wrong? docs/decisions/0014-mutation.md."""
