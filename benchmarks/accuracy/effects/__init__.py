"""Effects that others have published, and whether the simulator shows them with the right sign and size."""
