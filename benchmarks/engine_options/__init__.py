"""The options of each engine's parser, written as data for ``servewise check`` and for the test of emitted flags."""
