"""One page of accuracy: every reference set with its errors, out of the results of record."""
