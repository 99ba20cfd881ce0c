"""A stand-in server with an exact schedule: it logs when each token truly left, and misbehaves on request."""
