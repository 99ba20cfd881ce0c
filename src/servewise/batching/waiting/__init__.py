"""In which order sequences that wait are admitted."""
