"""Published rates of real engines, one stream and small batches, beside predictions."""
