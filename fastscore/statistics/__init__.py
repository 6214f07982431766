"""Statistics as plain functions over arrays: intervals, effects, tests, the bootstrap."""

SAMPLES = 2_000
"""Default number of bootstrap samples."""
