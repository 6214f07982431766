"""What the first rows of logs contain: which suites can read them, and what they lack."""
