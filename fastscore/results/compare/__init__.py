"""Comparing runs, or the levels of one: `compare` is the entry and returns a `Comparison`."""

from fastscore.results.compare.runs import compare as compare
from fastscore.results.compare.tables import ALPHA as ALPHA
from fastscore.results.compare.tables import Comparison as Comparison
