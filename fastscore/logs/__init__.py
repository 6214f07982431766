"""Reading logs: files, shards, typed rows and rejects."""
