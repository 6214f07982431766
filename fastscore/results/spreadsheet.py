"""CSV that a spreadsheet may open: text in it is never taken for a formula."""

import polars as pl

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet takes for the start of a formula, or strips before one."""


def write_csv(frame: pl.DataFrame) -> str:
    """Write a frame as CSV; an apostrophe goes before text that a spreadsheet would compute.

    Only text is touched: a negative number stays a number.
    """
    text = pl.col(pl.String)
    is_formula = text.str.slice(0, 1).is_in(FORMULA_STARTS)
    safe = frame.with_columns(pl.when(is_formula).then("'" + text).otherwise(text).name.keep())
    return safe.rename(
        {name: f"'{name}" for name in frame.columns if name.startswith(FORMULA_STARTS)}
    ).write_csv()
