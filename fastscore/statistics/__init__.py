"""Statistics as plain functions over arrays: intervals, effects, tests, the bootstrap."""

ALPHA = 0.05
"""Default level of significance."""

SAMPLES = 2_000
"""Default number of bootstrap samples."""
