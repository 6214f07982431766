"""A judge's folder: scores that an analysis joins, repeats, rejects, and how far to trust them.

``judgements.jsonl`` has a line a dialogue with the means over its repeats, as ``--judge`` of
`fastscore analyse` and `compare` reads it; ``repeats.parquet`` every score; ``rejects.jsonl`` every
repeat without one, with the answer; ``summary.json`` agreement, consistency, and the checks of
position and length.
"""

from collections.abc import Sequence
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
from fastscore.statistics.agreement import krippendorff_alpha
from fastscore.statistics.correlation import spearman
from fastscore.statistics.significance import holm, mean_interval, paired_t
from fastscore.version import __version__

JUDGEMENTS, REPEATS = "judgements.jsonl", "repeats.parquet"
REJECTS, SUMMARY = "rejects.jsonl", "summary.json"


def write_judgements(
    folder: Path,
    transcripts: Sequence[Transcript],
    judgements: Judgements,
    rubric: Rubric,
    described: dict[str, Any],
) -> dict[str, Any]:
    """Write a judge's folder; return its summary.

    Parameters
    ----------
    folder
        The folder; files of the same names are replaced.
    transcripts, judgements, rubric
        What was judged, how, and by what.
    described
        What else the summary states: model, endpoint, repeats, seed, suite.
    """
    places = _places(transcripts)
    repeats = judgements.scores.join(places, on="row", how="left", maintain_order="left")
    rejects = judgements.rejects.join(places, on="row", how="left", maintain_order="left")
    summary = {
        "fastscore": __version__,
        "rubric": rubric.name,
        "rubric_hash": rubric.digest,
        "scale": [rubric.low, rubric.high],
        **described,
        **summarise(repeats, rubric, len(transcripts), rejects.height),
    }
    signature = orjson.dumps(summary).decode()
    commit_table(folder / REPEATS, repeats.drop("row"), {"fastscore.judge": signature})
    commit_bytes(folder / REJECTS, _lines(rejects.drop("row", "words", "turns").to_dicts()))
    judged_by = f"{described['model']} by {rubric.name} {rubric.digest[:12]}"
    commit_bytes(folder / JUDGEMENTS, _lines(_means(repeats, rubric, judged_by)))
    commit_json(folder / SUMMARY, summary)
    return summary


def _places(transcripts: Sequence[Transcript]) -> pl.DataFrame:
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


def _lines(rows: Sequence[dict[str, Any]]) -> bytes:
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


def summarise(
    repeats: pl.DataFrame, rubric: Rubric, n_dialogues: int, n_rejects: int
) -> dict[str, Any]:
    """Say how a judge scored and how far its scores can be trusted.

    Returns
    -------
    dict
        By dimension: mean with its 95 % interval over dialogues, Krippendorff's alpha of the
        repeats (interval data) and the share of dialogues whose repeats all agree (both null
        without repeats), the mean deviation of scores asked at each position from their dialogue's
        mean, and Spearman's rho of the score and the dialogue's length in words. Where logs name
        several models, means by model and paired differences over dialogues of the same id.
    """
    return {
        "dialogues": n_dialogues,
        "dialogues_judged": repeats["row"].n_unique(),
        "repeats_rejected": n_rejects,
        "dimensions": {
            name: _dimension(repeats.filter(pl.col("dimension") == name))
            for name in rubric.questions
        },
        **_models(repeats, rubric),
    }


def _dimension(scores: pl.DataFrame) -> dict[str, Any]:
    wide = scores.pivot("repeat", index="row", values="score", sort_columns=True)
    matrix = wide.drop("row").cast(pl.Float64).to_numpy() if wide.width > 1 else np.zeros((0, 1))
    means = scores.group_by("row", maintain_order=True).agg(
        pl.col("score").mean(), pl.col("words").first(), pl.len().alias("n"), spread=_SPREAD
    )
    several = means.filter(pl.col("n") > 1)
    interval = _interval(means["score"])
    length = spearman(means["words"], means["score"]) if means.height else None
    return {
        **interval,
        "alpha": krippendorff_alpha(matrix),
        "all_repeats_agree": several.select((pl.col("spread") == 0).mean()).item(),
        "by_position": _positions(scores),
        "length_rho": length.statistic if length else None,
        "length_p": length.p_value if length else None,
    }


_SPREAD = pl.col("score").max() - pl.col("score").min()


def _interval(values: pl.Series) -> dict[str, Any]:
    found = mean_interval(values)
    return {
        "n": len(values),
        "mean": found.value,
        "low": found.low,
        "high": found.high,
    }


def _positions(scores: pl.DataFrame) -> dict[str, float]:
    """Return by how much scores that were asked at a position differ from their dialogue's mean."""
    deviation = (pl.col("score") - pl.col("score").mean().over("row")).alias("deviation")
    by_position = (
        scores.with_columns(deviation).group_by("position").agg(pl.col("deviation").mean())
    )
    rows = by_position.sort("position").iter_rows()
    return {str(position): mean for position, mean in rows}


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
                name: _interval(
                    means.filter(pl.col("model") == model, pl.col("dimension") == name)["score"]
                )
                for name in rubric.questions
            }
            for model in models
        },
        "differences": [{**row, "holm_p": p} for row, p in zip(rows, corrected, strict=True)],
    }


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
