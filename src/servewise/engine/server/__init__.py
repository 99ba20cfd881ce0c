"""The engine behind an OpenAI-compatible API: one thread steps, asynchronous handlers submit and await tokens."""
