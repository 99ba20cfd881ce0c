"""Model families: how each one's config becomes layers. ``FAMILIES`` maps a ``model_type`` to its reader."""
