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

_KEY_NUMBER = pl.col("key_low") ^ pl.col("key_high") ^ pl.col("file").cast(pl.UInt64).hash()
"""The same for spans of one key of one file, and seldom for others."""


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
        found = self._found[0]
        file, first = found["file"].to_numpy(), found["first"].to_numpy()
        same_file = file[1:] == file[:-1]
        if ((file[1:] > file[:-1]) | (same_file & (first[1:] >= first[:-1]))).all():
            return found
        return found.sort("file", "first")

    def _join(self) -> None:
        found = pl.concat(self._found)
        # most keys have one span, which nothing is to be joined to
        numbers = found.select(_KEY_NUMBER).to_series()
        ascending = numbers.sort().to_numpy()
        if (ascending[1:] == ascending[:-1]).any():
            repeated = numbers.is_duplicated()
            found = pl.concat([found.filter(~repeated), _join_all(found.filter(repeated))])
        rows_of_their_own = pl.col("is_local") & (pl.col("key_high") == 0)
        found = found.with_columns(
            pl.when(rows_of_their_own).then("dialogues").otherwise(1).alias("dialogues")
        )
        self._found, self._height = [found], found.height


def _join_all(spans: pl.DataFrame) -> pl.DataFrame:
    return (
        spans.group_by("file", "is_local", "key_high", "key_low")
        .agg(
            pl.col("first", "line").first(),
            pl.col("last").last(),
            pl.col("dialogues").sum(),
        )
        .select(*SPAN_SCHEMA)
    )
