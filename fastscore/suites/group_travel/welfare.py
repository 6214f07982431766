"""What the satisfaction of pairs makes of members and groups: W1 to W3, M8, M10 to M14."""

import numpy as np
import polars as pl
from fastscore_jit.arrays import Float64Array, Indices
from fastscore_kernels import gini_ragged

from fastscore.suites.group_travel.terms import CATEGORY_SLOTS
from fastscore.suites.grouping import offsets_of, sum_by

_CHANNELS = ("room", "category", "lexical", "semantic")


def count_pairs(pairs: pl.DataFrame, n_dialogues: int) -> pl.DataFrame:
    """Count what M8, M10, M10b, M12 and M14 are made of, and the channels that fire.

    Parameters
    ----------
    pairs
        ``dialogue_row``, ``slot``, and the channels of `schema.PAIRS`.
    n_dialogues
        The number of dialogues.
    """
    row = pairs["dialogue_row"].to_numpy()

    def count(values: pl.Series) -> Indices:
        present = values.fill_null(False).to_numpy()
        return np.bincount(row[present], minlength=n_dialogues).astype(np.int64)

    def total(values: pl.Series) -> Float64Array:
        present = values.is_not_null().to_numpy()
        return sum_by(row[present], values.drop_nulls().to_numpy(), n_dialogues)

    by_category = pairs["category_channel"].is_not_null() & pairs["slot"].is_in(CATEGORY_SLOTS)
    counts: dict[str, Indices | Float64Array] = {
        "n_pairs": count(pairs["slot"].is_not_null()),
        "M8_num": count(pairs["addressed"]),
        "M8a_num": count(pairs["addressed_synthesis"]),
        "M8b_num": count(pairs["addressed_plan"]),
        "M8b_den": count(pairs["addressed_plan"].is_not_null()),
        "M10_num": count(pairs["satisfied"]),
        "M10_den": count(pairs["satisfied"].is_not_null()),
        "M10b_num": count(pairs["category_channel"]),
        "M10b_den": count(by_category),
        "M12_num": total(pairs["slot_similarity"]),
        "M12_den": count(pairs["slot_similarity"].is_not_null()),
        "n_compared": count(pairs["is_compared"]),
        "n_resolved": count(pairs["is_resolved"]),
        "M14_num": total(pairs["resolution_similarity"]),
        "M14_den": count(pairs["resolution_similarity"].is_not_null()),
    }
    for channel in _CHANNELS:
        counts[f"n_{channel}_channel"] = count(pairs[f"{channel}_channel"])
    return pl.DataFrame(counts)


def measure_members(pairs: pl.DataFrame, n_dialogues: int) -> pl.DataFrame:
    """Measure the satisfaction of members, and its welfare and fairness in each dialogue.

    Parameters
    ----------
    pairs
        ``dialogue_row``, ``member``, ``member_row``, ``satisfied`` and ``slot_similarity``.
    n_dialogues
        The number of dialogues.

    Returns
    -------
    pl.DataFrame
        ``W1_num`` (sum of s_i), ``W1_den``, ``W2``, ``W3``, ``M11_num``, ``M13`` (all 0 without a
        member) and ``members``. Nothing depends on the order of members.
    """
    judged = pairs.filter(pl.col("satisfied").is_not_null())
    members = judged.group_by("member_row", maintain_order=True).agg(
        pl.col("dialogue_row", "member").first(),
        pl.len().cast(pl.Int64).alias("pairs"),
        pl.col("satisfied").sum().cast(pl.Int64),
    )
    row = members["dialogue_row"].to_numpy()
    share: Float64Array = (members["satisfied"] / members["pairs"]).to_numpy()
    n_members = np.bincount(row, minlength=n_dialogues)
    least = np.ones(n_dialogues)
    np.minimum.at(least, row, share)
    logs = np.log(share, where=share > 0.0, out=np.zeros(len(share)))
    geometric = np.exp(sum_by(row, logs, n_dialogues) / np.maximum(n_members, 1))
    means, fairness = _semantic_means(judged, members, n_dialogues)
    return pl.DataFrame(
        {
            "W1_num": sum_by(row, share, n_dialogues),
            "W1_den": n_members,
            "W2": least,
            "W3": np.where(least == 0.0, 0.0, geometric),
            "M11_num": np.bincount(row[share == 1.0], minlength=n_dialogues),
            "M13": fairness,
            "members": _members_column(
                members.with_columns(
                    pl.Series("satisfaction", share),
                    pl.Series("semantic_mean", means, nan_to_null=True),
                ),
                n_dialogues,
            ),
        }
    )


def _semantic_means(
    pairs: pl.DataFrame, members: pl.DataFrame, n_dialogues: int
) -> tuple[Float64Array, Float64Array]:
    """Return each member's mean similarity (NaN without any), and each dialogue's Gini."""
    place = np.full(int(members["member_row"].max() or 0) + 1, -1, np.int64)  # type: ignore[arg-type]
    place[members["member_row"].to_numpy()] = np.arange(members.height)
    similarity = pairs["slot_similarity"]
    owner = place[pairs["member_row"].to_numpy()][similarity.is_not_null().to_numpy()]
    sums = sum_by(owner, similarity.drop_nulls().to_numpy(), members.height)
    counts = np.bincount(owner, minlength=members.height)
    means: Float64Array = np.divide(sums, counts, where=counts > 0, out=np.full(len(sums), np.nan))
    row = members["dialogue_row"].to_numpy()
    # members without a mean come last, and do not count
    order = np.lexsort((means, row, counts == 0))[: np.count_nonzero(counts)]
    bounds = offsets_of(np.bincount(row[order], minlength=n_dialogues))
    return means, gini_ragged(means[order], bounds)


def _members_column(members: pl.DataFrame, n_dialogues: int) -> pl.Series:
    fields = ("member", "pairs", "satisfied", "satisfaction", "semantic_mean")
    lists = members.group_by("dialogue_row", maintain_order=True).agg(
        pl.struct(*fields).alias("members")
    )
    rows = pl.DataFrame({"dialogue_row": np.arange(n_dialogues)})
    found = rows.join(lists, on="dialogue_row", how="left", maintain_order="left")
    return found["members"].fill_null([])
