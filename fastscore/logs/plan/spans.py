"""Spans: from which row to which a dialogue of a file stands."""

import polars as pl

_SPANS_AT_ONCE = 1 << 18

FILE_KEY = (1, 0)
"""The local key of the dialogue that is its file; those of rows of their own begin with 0."""

SPAN_SCHEMA: dict[str, pl.DataType] = {
    "file": pl.Int64(),
    "is_local": pl.Boolean(),
    "key_high": pl.UInt64(),
    "key_low": pl.UInt64(),
    "first": pl.Int64(),
    "last": pl.Int64(),
    "line": pl.Int64(),
    "dialogues": pl.Int64(),
}
"""Rows of a dialogue of a file, or of dialogues of a row each that stand near each other: the
file's place among the inputs; whether the key names no dialogue outside of its file (the file
itself, or rows of their own); the key; the first and the last row's start (byte, or Parquet row);
the first row's line; how many dialogues they are, of lines that need not be read blank and faulty
ones too. Rows that are dialogues of their own are kept together by their place in the file, so that
their number costs no memory."""


class Spans:
    """The spans of all files, as they are found, file by file in order."""

    def __init__(self) -> None:
        self._found = [pl.DataFrame(schema=SPAN_SCHEMA)]
        self._height = 0

    def add(self, spans: pl.DataFrame) -> None:
        """Add spans that stand after those before, in `SPAN_SCHEMA`."""
        self._found.append(spans)
        self._height += spans.height
        if self._height > _SPANS_AT_ONCE + 2 * self._found[0].height:
            self._join()

    def joined(self) -> pl.DataFrame:
        """Return one span for each key of each file, by file and first row."""
        self._join()
        return self._found[0].sort("file", "first")

    def _join(self) -> None:
        keys = ("file", "is_local", "key_high", "key_low")
        rows_of_their_own = pl.col("is_local") & (pl.col("key_high") == 0)
        joined = (
            pl.concat(self._found)
            .group_by(keys)
            .agg(
                pl.col("first", "line").first(),
                pl.col("last").last(),
                pl.col("dialogues").sum(),
            )
            .with_columns(
                pl.when(rows_of_their_own).then("dialogues").otherwise(1).alias("dialogues")
            )
            .select(*SPAN_SCHEMA)
        )
        self._found, self._height = [joined], joined.height
