"""The one record that simulator, engine and load client write, and the run directory that holds it."""
