"""A server whose model is split over pipeline stages: several batches in flight, bubbles where there are too few."""
