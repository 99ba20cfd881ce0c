"""The reference engine: real checkpoints under the policies that the simulator runs; it writes the same records."""
