"""Which files a log is made of."""
