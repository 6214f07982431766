"""Comparing runs, or the levels of one: `compare` is the entry and returns a `Comparison`."""

from fastscore.results.compare.ranking import Comparison as Comparison
from fastscore.results.compare.runs import compare as compare
