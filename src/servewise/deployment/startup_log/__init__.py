"""An engine's start-up log: read into facts, and set against the prediction term by term."""
