"""From logits to tokens: the request's own settings, its own random stream, whatever else is in the batch."""
