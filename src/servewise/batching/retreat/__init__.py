"""When the pool runs dry: who has to go back, and what becomes of its KV."""
