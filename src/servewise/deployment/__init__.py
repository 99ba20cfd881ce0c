"""Model x accelerators x parallelism x precision x limits: does it fit, and how many KV tokens are left."""
