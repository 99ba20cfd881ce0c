"""Single kernels that others timed beside our time of that kernel."""
