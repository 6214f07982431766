"""Published dialogue metrics over millions of logged turns, exact and fast."""

from fastscore.version import __version__

__all__ = ["__version__"]
