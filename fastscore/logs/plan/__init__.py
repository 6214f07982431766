"""What is read together: dialogues, byte ranges, shards."""
