"""One model over several processes: each holds a share of every layer."""
