"""The study's experiment, run: what is served how, the machine meanwhile, the runs, and their rows."""
