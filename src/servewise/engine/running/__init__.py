"""The running engine: a policy's decisions carried out on a real model, and written down as the simulator writes."""
