"""Results of other load clients, read into our records, with what each of them gets wrong."""
