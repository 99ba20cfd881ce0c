"""The metrics of runs that are too long for memory: over columns on disk, equal to those over columns in memory."""
