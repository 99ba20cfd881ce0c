"""Several processes send one schedule: of this machine, or of several hosts whose clocks are compared."""
