"""Reading logs: which files, which shards, which rows, and what is wrong with the others."""
