"""What a log was when it was planned, and what is wrong with which line."""
