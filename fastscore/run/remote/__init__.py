"""Runs in object stores: put-if-absent commits, a numbered log, and copies in the cache."""
