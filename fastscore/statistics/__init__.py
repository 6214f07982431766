"""Statistics as plain functions over arrays: intervals, effects, tests."""

ALPHA = 0.05
"""Default level of significance."""
