"""Real servers in a closed loop at fixed lengths, beside the simulator at the same points."""
