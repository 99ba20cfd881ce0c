"""The questions: one file each, from names and numbers to an Answer; commands and `import servewise` call them."""
