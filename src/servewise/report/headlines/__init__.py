"""The first thing to read of an answer, by command: the sentence, what binds, the few numbers that matter."""
