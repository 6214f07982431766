"""State of logs at planning, limits of reading, and rejects."""
