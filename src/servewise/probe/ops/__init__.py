"""What this machine does: bandwidth, FLOP/s, and the times of a model's operations, measured."""
