"""The decoder's step as one compiled function, for CPUs; chosen at run time where it can be built."""
