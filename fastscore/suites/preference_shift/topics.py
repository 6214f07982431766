"""Topic words of a text by the published heuristic: words that sound like a taste in films.

This is keyword spotting, not topic modelling, and is offered for segments alone.
"""

import re

import polars as pl

from fastscore.suites.grouping import factorize
from fastscore.suites.preference_shift.concepts import Sets, as_sets, gather_sets

MOST_TOPICS = 5
STOP_WORDS = frozenset(
    """
    a about after an and are as at be been before being between by can could did do does during for
    from had has have in into is like may might more most must no nor not of on or over should that
    the these this those to very was were will with would
    """.split()  # noqa: SIM905
)
HINTS = (
    "romance",
    "horror",
    "sci-fi",
    "science fiction",
    "drama",
    "comedy",
    "thriller",
    "actor",
    "actors",
    "cast",
    "director",
    "plot",
    "ending",
    "mood",
    "emotional",
    "gore",
    "space",
    "aliens",
    "ghost",
    "jump scare",
    "recommendation",
    "movie",
    "film",
)
GENERIC = (
    "recommendation",
    "conversation",
    "system",
    "response",
    "chat",
    "user",
    "talk",
    "suggestion",
    "question",
    "answer",
    "film",
    "movie",
    "thing",
    "stuff",
)
_SCORED = "love|fear|sad|happy|romantic|tense|dark|space|sci|ghost|drama|emot"
_KEPT = "love|fear|sad|happy|romantic|tense|dark|futur|drama|emot|space|ghost|sci"
_BONUS = 2
_HINT_PATTERN = "|".join(re.escape(hint) for hint in HINTS)


def topic_sets(texts: pl.Series) -> Sets:
    """Return a set of topic words for each text.

    A word scores one for each time it occurs, two more if it is a hint and two if it has a
    stem of feeling or setting; of the five that score best (the earlier on a draw) those stay that
    have a hint or such a stem in them and are not generic.
    """
    codes, once = factorize(texts)
    words = _topic_words(once)
    numbers, _ = factorize(words["word"])
    sets = as_sets(words["text"].to_numpy(), numbers, len(once))
    return gather_sets(sets, codes)


def joined_topics(texts: pl.Series) -> pl.Series:
    """Return the topic words of each text, best first, with spaces between; empty for none."""
    codes, once = factorize(texts)
    joined = _topic_words(once).group_by("text").agg(pl.col("word").str.join(" "))
    numbers = pl.DataFrame({"text": range(len(once))}, schema={"text": pl.Int64})
    found = numbers.join(joined, on="text", how="left", maintain_order="left")
    return found["word"].fill_null("").gather(pl.Series(codes))


def _topic_words(texts: pl.Series) -> pl.DataFrame:
    """Return the topic words of each text, best first: ``text`` (its number) and ``word``."""
    return _best_words(texts).filter(
        pl.col("word").str.len_chars() >= 2,
        ~pl.col("word").is_in(GENERIC),
        pl.col("word").str.contains(f"{_HINT_PATTERN}|{_KEPT}"),
    )


def _best_words(texts: pl.Series) -> pl.DataFrame:
    """Return the words of each text that score best: ``text`` (its number) and ``word``."""
    cleaned = pl.col("word").str.to_lowercase().str.replace_all(r"[^a-z0-9\s-]", " ")
    return (
        pl.DataFrame(
            {"text": range(len(texts)), "word": texts}, schema_overrides={"text": pl.Int64}
        )
        .with_columns(cleaned.str.extract_all(r"\S+"))
        .explode("word")
        .drop_nulls("word")
        .filter(~pl.col("word").is_in(STOP_WORDS))
        .with_row_index("place")
        .group_by("text", "word")
        .agg(pl.len().cast(pl.Int64).alias("score"), pl.col("place").min())
        .with_columns(
            pl.col("score")
            + _BONUS * pl.col("word").is_in(HINTS).cast(pl.Int64)
            + _BONUS * pl.col("word").str.contains(_SCORED).cast(pl.Int64)
        )
        .sort("text", "score", "place", descending=[False, True, False])
        .filter(pl.int_range(pl.len()).over("text") < MOST_TOPICS)
    )
