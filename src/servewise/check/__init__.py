"""What is wrong with a configuration, a report or a prompt log: the study's common mistakes and the field's, named."""
