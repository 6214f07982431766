"""What is read together: dialogues, file ranges, shards."""
