"""The event core: policies driven by estimated time, jumping over steps in which nothing changes."""
