"""A judge's folder: scores that an analysis joins, repeats, failures, and how far to trust them.

``judgements.jsonl`` has a line a dialogue with the means over its repeats, as ``--judge`` of
`fastscore analyse` and `compare` reads it; ``repeats.parquet`` every score; ``failures.jsonl``
every repeat without one, with the answer; ``summary.json`` agreement, consistency, and the checks
of position and length.
"""

from collections.abc import Sequence
from dataclasses import asdict
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import polars as pl

from fastscore.llm.judge import Judgements
from fastscore.llm.rubrics import Rubric
from fastscore.llm.transcripts import Transcript
from fastscore.run.commit import commit_bytes, commit_json, commit_table
from fastscore.statistics.agreement import Coefficient, clustered_spearman, krippendorff_alpha
from fastscore.statistics.clustered import Estimate, clustered_mean
from fastscore.statistics.significance import holm, paired_t
from fastscore.version import __version__

JUDGEMENTS, REPEATS = "judgements.jsonl", "repeats.parquet"
FAILURES, SUMMARY = "failures.jsonl", "summary.json"

ONE_REPEAT, ONE_ORDER = "one_repeat", "one_order"
"""Why agreement, or a bias of position, cannot be told: each dialogue was judged once, or the
dimensions were shown in one order alone."""


def write_judgements(
    folder: Path,
    transcripts: Sequence[Transcript],
    judgements: Judgements,
    rubric: Rubric,
    described: dict[str, Any],
) -> dict[str, Any]:
    """Write a judge's folder; return its summary.

    A dialogue is scored if all of its repeats were read. Means over fewer would weigh the orders of
    the dimensions unequally.

    Parameters
    ----------
    folder
        The folder; files of the same names are replaced.
    transcripts, judgements, rubric
        What was judged, how, and by what.
    described
        What else the summary contains: model, endpoint, repeats, seed, suite.
    """
    places = place_rows(transcripts)
    incomplete = list(judgements.failed | judgements.not_asked)
    repeats = judgements.scores.join(places, on="row", how="left", maintain_order="left")
    failures = judgements.failures.join(places, on="row", how="left", maintain_order="left")
    complete = repeats.filter(~pl.col("row").is_in(incomplete))
    summary = {
        "fastscore": __version__,
        "rubric": rubric.name,
        "rubric_hash": rubric.digest,
        "scale": [rubric.low, rubric.high],
        **described,
        "dialogues": len(transcripts),
        "dialogues_judged": complete["row"].n_unique(),
        "dialogues_failed": len(judgements.failed),
        "dialogues_not_asked": len(judgements.not_asked - judgements.failed),
        "failures": dict(failures["kind"].value_counts().sort("kind").iter_rows()),
        **summarise(complete, rubric, described["repeats"]),
    }
    signature = orjson.dumps(summary).decode()
    commit_table(folder / REPEATS, repeats.drop("row"), {"fastscore.judge": signature})
    commit_bytes(folder / FAILURES, as_lines(failures.drop("row", "words", "turns").to_dicts()))
    judged_by = f"{described['model']} by {rubric.name} {rubric.digest[:12]}"
    commit_bytes(folder / JUDGEMENTS, as_lines(_means(complete, rubric, judged_by)))
    commit_json(folder / SUMMARY, summary)
    return summary


def place_rows(transcripts: Sequence[Transcript]) -> pl.DataFrame:
    """Return a row a dialogue: its number, place, ids and length."""
    return pl.DataFrame(
        [
            (
                row,
                each.file,
                each.line,
                each.dialogue,
                each.model,
                sum(len(text.split()) for _, text in each.said),
                len(each.said),
            )
            for row, each in enumerate(transcripts)
        ],
        schema={
            "row": pl.Int64,
            "file": pl.String,
            "line": pl.Int64,
            "dialogue": pl.String,
            "model": pl.String,
            "words": pl.Int64,
            "turns": pl.Int64,
        },
        orient="row",
    )


def as_lines(rows: Sequence[dict[str, Any]]) -> bytes:
    """Write rows as JSON Lines."""
    return b"".join(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows)


def _means(repeats: pl.DataFrame, rubric: Rubric, judged_by: str) -> list[dict[str, Any]]:
    by_dialogue = repeats.group_by("row", maintain_order=True).agg(
        pl.col("dialogue", "model", "file", "line").first(),
        pl.col("repeat").n_unique().alias("repeats"),
        *(
            pl.col("score").filter(pl.col("dimension") == name).mean().alias(f"judge:{name}")
            for name in rubric.questions
        ),
    )
    return [
        {
            "dialogue": row["dialogue"],
            "model": row["model"],
            "judge": {name: row[f"judge:{name}"] for name in rubric.questions},
            "repeats": row["repeats"],
            "judged_by": judged_by,
            "judged_file": row["file"],
            "judged_line": row["line"],
        }
        for row in by_dialogue.iter_rows(named=True)
    ]


def summarise(repeats: pl.DataFrame, rubric: Rubric, n_repeats: int) -> dict[str, Any]:
    """Describe how a judge scored and how far its scores can be trusted.

    Parameters
    ----------
    repeats
        The scores of dialogues of which all repeats were read.
    rubric, n_repeats
        What was judged, how often.

    Returns
    -------
    dict
        By dimension: mean with its 95 % interval over dialogues, Krippendorff's alpha of the
        repeats with ordinal and interval distance, the share of dialogues whose repeats all agree,
        the mean deviation of scores asked at each position from their dialogue's mean, and
        Spearman's rho of the score and the dialogue's length in words. What is null has its reason
        under ``nulls``. If logs name several models, also means by model and paired differences
        over dialogues of the same id.
    """
    return {
        "dimensions": {
            name: _dimension(repeats.filter(pl.col("dimension") == name), rubric, n_repeats)
            for name in rubric.questions
        },
        **_models(repeats, rubric),
    }


def _dimension(scores: pl.DataFrame, rubric: Rubric, n_repeats: int) -> dict[str, Any]:
    # models that meet the same users share their dialogues' ids, and are not independent
    unit = "dialogue" if scores["model"].n_unique() > 1 else "row"
    means = (
        scores.group_by("row", maintain_order=True)
        .agg(pl.col("score").mean(), pl.col(unit).first().alias("unit"), *_OF_DIALOGUE)
        .sort("row")
    )
    wide = scores.sort("row").pivot("repeat", index="row", values="score", sort_columns=True)
    matrix = wide.drop("row").cast(pl.Float64).to_numpy() if wide.width > 1 else np.zeros((0, 1))
    units = means["unit"].rank("dense").to_numpy()
    length = clustered_spearman(means["words"], means["score"], units, means["model"].fill_null(""))
    by_position, no_position = _positions(scores, len(rubric.questions), n_repeats)
    mean = _mean(means.select("unit", "score"), rubric)
    found = {
        **_interval(means.height, mean),
        "alpha_ordinal": _alpha(krippendorff_alpha(matrix, "ordinal", units), n_repeats),
        "alpha_interval": _alpha(krippendorff_alpha(matrix, "interval", units), n_repeats),
        "all_repeats_agree": (means["spread"] == 0).mean() if n_repeats > 1 else None,
        "by_position": by_position,
        "length_rho": length.value,
        "length_p": length.p_value,
    }
    reasons = {
        "mean": mean.reason,
        "low": mean.reason,
        "high": mean.reason,
        "all_repeats_agree": "too_few_values" if n_repeats > 1 else ONE_REPEAT,
        "by_position": no_position,
        "length_rho": length.reason,
        "length_p": length.reason,
    }
    return {**found, "nulls": {name: reasons[name] for name in reasons if found[name] is None}}


_OF_DIALOGUE = (
    pl.col("words", "model").first(),
    (pl.col("score").max() - pl.col("score").min()).alias("spread"),
)


def _alpha(found: Coefficient, n_repeats: int) -> dict[str, Any]:
    described = asdict(found)
    return described if n_repeats > 1 else {**described, "reason": ONE_REPEAT}


def _mean(scores: pl.DataFrame, rubric: Rubric) -> Estimate:
    """Return the mean of scores with an interval over units, inside the scale."""
    units = scores.group_by("unit").agg(pl.col("score").sum(), pl.len().cast(pl.Float64).alias("n"))
    return clustered_mean(units["score"], units["n"], minimum=rubric.low, maximum=rubric.high)


def _interval(n: int, found: Estimate) -> dict[str, Any]:
    return {"n": n, "mean": found.value, "low": found.low, "high": found.high}


def _positions(
    scores: pl.DataFrame, n_orders: int, n_repeats: int
) -> tuple[dict[str, float] | None, str | None]:
    """Return by how much scores that were asked at a position differ from their dialogue's mean.

    Without several orders, or without a score, there is a reason in place of the deviations.
    """
    if n_orders == 1:
        return None, ONE_ORDER
    if n_repeats == 1:
        return None, ONE_REPEAT
    if scores.is_empty():
        return None, "too_few_values"
    deviation = (pl.col("score") - pl.col("score").mean().over("row")).alias("deviation")
    by_position = (
        scores.with_columns(deviation).group_by("position").agg(pl.col("deviation").mean())
    )
    rows = by_position.sort("position").iter_rows()
    return {str(position): mean for position, mean in rows}, None


def _models(repeats: pl.DataFrame, rubric: Rubric) -> dict[str, Any]:
    """Compare the models of the logs, on dialogues of the same id."""
    models = repeats["model"].drop_nulls().unique().sort().to_list()
    if len(models) < 2:
        return {}
    means = repeats.group_by("model", "dialogue", "dimension").agg(pl.col("score").mean())
    rows: list[dict[str, Any]] = []
    for name in rubric.questions:
        of_name = means.filter(pl.col("dimension") == name)
        by_model = {
            model: of_name.filter(pl.col("model") == model).select("dialogue", "score")
            for model in models
        }
        for first, second in combinations(models, 2):
            pairs = by_model[first].join(by_model[second], on="dialogue").sort("dialogue")
            rows.append(_difference(name, first, second, pairs))
    corrected = holm([row["p"] for row in rows])
    return {
        "models": {
            model: {
                name: _of_model(means.filter(model=model, dimension=name), rubric)
                for name in rubric.questions
            }
            for model in models
        },
        "differences": [{**row, "holm_p": p} for row, p in zip(rows, corrected, strict=True)],
    }


def _of_model(means: pl.DataFrame, rubric: Rubric) -> dict[str, Any]:
    found = _mean(means.select("score", unit="dialogue"), rubric)
    return {**_interval(means.height, found), "reason": found.reason}


def _difference(name: str, first: str, second: str, pairs: pl.DataFrame) -> dict[str, Any]:
    a, b = pairs["score"].to_numpy(), pairs["score_right"].to_numpy()
    difference = float((b - a).mean()) if len(a) else None
    found = paired_t(a, b) if len(a) > 1 else None
    return {
        "dimension": name,
        "model": second,
        "against": first,
        "n": len(a),
        "difference": difference,
        "p": found.p_value if found else None,
    }
