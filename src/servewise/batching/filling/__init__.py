"""What the next step holds: who decodes, whose prompt is computed, and how much of it."""
