"""The version of fastscore."""

__version__ = "0.1.0"
