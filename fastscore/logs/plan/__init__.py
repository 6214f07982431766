"""Planning of reads: dialogues, file ranges, shards."""
