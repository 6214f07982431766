"""The one place that holds fastscore's version."""

__version__ = "0.1.0"
