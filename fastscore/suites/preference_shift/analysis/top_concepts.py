"""Which concepts answers miss, and which they bring in unasked, most often."""

import hashlib
from pathlib import Path

import polars as pl

from fastscore.suites.preference_shift.analysis.scored import ALL, GROUP_SCHEMA, MODEL, Scored
from fastscore.suites.preference_shift.concepts import concept_idf


def read_weights(scored: Scored) -> tuple[pl.DataFrame | None, str]:
    """Read the catalogue that the run names, if it is still there as it was.

    Returns
    -------
    tuple
        Every concept's weight (concept, idf) and an empty text, or None and what is missing.
    """
    path = Path(scored.options.catalogue)
    try:
        digest = hashlib.blake2b(path.read_bytes(), digest_size=8).hexdigest()
    except OSError as error:
        return None, f"{path}: the run's catalogue cannot be read ({error.strerror})."
    if f"catalogue=blake2b:{digest}" not in scored.signature.split("|"):
        return None, f"{path}: not the catalogue that the run was scored with."
    return concept_idf(scored.options), ""


MOST_OVER_ALL, MOST_OF_A_MODEL = 200, 100
"""How many concepts of a field are listed, as the successor of the public evaluation lists them."""

KINDS = ("missing", "hallucinated")

TOP_CONCEPTS_SCHEMA: dict[str, pl.DataType] = {
    **GROUP_SCHEMA,
    "kind": pl.String(),
    "field": pl.String(),
    "rank": pl.Int64(),
    "concept": pl.String(),
    "n_turns": pl.Int64(),
    "n_conversations": pl.Int64(),
    "share_of_turns": pl.Float64(),
}
"""A concept among the most frequent ones of its kind (``missing``: of the user alone;
``hallucinated``: of the system alone) and field in a group: in how many turns and conversations it
is that, and in which share of the group's turns; ``rank`` from 1 by turns, then by name."""


def top_concepts(turns: pl.LazyFrame) -> pl.DataFrame:
    """List the concepts that are missing or hallucinated most often, by field.

    Parameters
    ----------
    turns
        The run's table of turns: file, line, model, missing_concepts, hallucinated_concepts.

    Returns
    -------
    pl.DataFrame
        In `TOP_CONCEPTS_SCHEMA`, over all conversations and, where there are several, by model.
    """
    counted = pl.concat([_by_model(turns, kind) for kind in KINDS]).collect()
    n_turns = turns.group_by("model").agg(pl.len().alias("turns")).collect()
    over_all = (
        counted.group_by("kind", "concept")
        .agg(pl.col("n_turns", "n_conversations").sum())
        .with_columns(pl.lit(n_turns["turns"].sum()).alias("turns"))
    )
    parts = [_ranked(over_all, ALL, [], MOST_OVER_ALL)]
    if n_turns["model"].drop_nulls().len() > 1:
        of_models = counted.drop_nulls("model").join(n_turns, on="model")
        parts.append(_ranked(of_models, MODEL, ["model"], MOST_OF_A_MODEL))
    return pl.concat(parts)


def _by_model(turns: pl.LazyFrame, kind: str) -> pl.LazyFrame:
    """Count the turns and conversations of each model that have each concept."""
    return (
        turns.select("file", "line", "model", pl.col(f"{kind}_concepts").alias("concept"))
        .explode("concept")
        .drop_nulls("concept")
        .group_by("model", "concept")
        .agg(
            pl.lit(kind).alias("kind"),
            pl.len().cast(pl.Int64).alias("n_turns"),
            pl.struct("file", "line").n_unique().cast(pl.Int64).alias("n_conversations"),
        )
    )


def _ranked(counted: pl.DataFrame, group: str, by: list[str], most: int) -> pl.DataFrame:
    """Keep the most frequent concepts of each kind and field, ranked."""
    within = [*by, "kind", "field"]
    return (
        counted.with_columns(pl.col("concept").str.split_exact("=", 1).struct[0].alias("field"))
        .sort(
            *by,
            pl.col("kind").replace_strict(
                {k: n for n, k in enumerate(KINDS)}, return_dtype=pl.Int8
            ),
            "field",
            pl.col("n_turns").neg(),
            "concept",
        )
        .with_columns(
            pl.int_range(1, 1 + pl.len(), dtype=pl.Int64).over(within).alias("rank"),
            pl.lit(group).alias("group"),
            (pl.col(by[0]) if by else pl.lit(None, dtype=pl.String)).alias("value"),
            (pl.col("n_turns") / pl.col("turns")).alias("share_of_turns"),
        )
        .filter(pl.col("rank") <= most)
        .select(*TOP_CONCEPTS_SCHEMA)
    )
