"""The Jaccard index of two texts' words: what the script's second version took for meaning."""

import polars as pl

from fastscore.suites.score_dialogue.events import PYTHON_WHITESPACE

_WORD = f"[^{PYTHON_WHITESPACE}]+"


def word_jaccard(a: pl.Series, b: pl.Series) -> pl.Series:
    """Compute the Jaccard index of the word sets of each pair of texts.

    Words are what Python's ``str.split`` gives, case and punctuation kept.

    Parameters
    ----------
    a, b
        As many texts each, without nulls.

    Returns
    -------
    pl.Series
        Float64 in [0, 1]; 0 where neither text has a word.
    """
    words = pl.DataFrame({"a": a, "b": b}).select(pl.all().str.extract_all(_WORD).list.unique())
    shared = pl.col("a").list.set_intersection("b").list.len().cast(pl.Float64)
    total = pl.col("a").list.len() + pl.col("b").list.len() - shared
    return words.select(pl.when(total > 0).then(shared / total).otherwise(0.0)).to_series()
