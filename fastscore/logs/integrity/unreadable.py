"""What reading a damaged file raises."""

import polars as pl

UNREADABLE_PARQUET = (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException)
"""polars panics where a footer leads beyond the file's end."""


def reason_of(error: BaseException) -> str:
    """Return in a few words why a file cannot be read."""
    if isinstance(error, pl.exceptions.PanicException):
        return "its footer does not fit its content"
    said = getattr(error, "strerror", None) or str(error)
    return said.splitlines()[0] if said else type(error).__name__
