"""Statistics as plain functions over arrays: intervals, effects, tests, the bootstrap."""
