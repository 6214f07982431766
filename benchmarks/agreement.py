"""Check that fastscore and the published script's way give the same numbers on the same logs."""

import json
from dataclasses import dataclass
from pathlib import Path

import polars as pl

SEMANTIC_TOLERANCE = 1e-4
ROUNDING_SLACK = 1e-9
KEYS = ["log", "utterance_index", "step"]
LEXICAL = ["lexical_similarity", "earliness"]
SEMANTIC = ["semantic_cosine_raw", "semantic_similarity"]
SCORES = [*LEXICAL, *SEMANTIC, "U_step"]


class DisagreementError(Exception):
    """The two sides' numbers differ by more than they may, or cover different rows."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far two sides agree: compared rows, and the largest difference by column."""

    rows: int
    largest: dict[str, float]


def published_steps(scores: Path) -> pl.DataFrame:
    """Read every step of a folder of ``STEM-score.json`` documents; ``log`` is the stem."""
    rows = []
    for path in sorted(scores.glob("*-score.json")):
        document = json.loads(path.read_text(encoding="utf-8"))
        stem = path.name.removesuffix("-score.json")
        rows += [
            {"log": stem, "utterance_index": utterance["utterance_number"], **step}
            for utterance in document["utterances"]
            for step in utterance["steps"]
        ]
    return pl.DataFrame(rows).select(*KEYS, *SCORES)


def run_steps(run: Path) -> pl.DataFrame:
    """Read every step of a run, rounded as the script prints; ``log`` is the file's stem."""
    dialogues = pl.scan_parquet(run / "dialogues" / "*.parquet").select(
        "dialogue", log=pl.col("file").str.split("/").list.last().str.strip_suffix(".jsonl")
    )
    steps = pl.scan_parquet(run / "steps" / "*.parquet").join(dialogues, on="dialogue")
    frame = steps.select(*KEYS, *(pl.col(name).fill_null(0.0) for name in SCORES)).collect()
    digits = {name: 6 if name == "semantic_cosine_raw" else 4 for name in SCORES}
    # Python's round, as the script's: polars breaks ties otherwise
    return frame.with_columns(
        pl.Series(name, [round(value, digits[name]) for value in frame[name]], dtype=pl.Float64)
        for name in SCORES
    )


def check_agreement(scores: Path, run: Path, *, lexical_only: bool) -> Agreement:
    """Compare a folder of the script's documents with a run over the same logs.

    The lexical part must be equal as printed (4 decimals), U as well without a semantic part; the
    semantic part and U with it must lie within `SEMANTIC_TOLERANCE`.

    Raises
    ------
    DisagreementError
        They do not agree; the message names the worst row.
    """
    theirs, ours = published_steps(scores), run_steps(run)
    both = theirs.join(ours, on=KEYS, how="inner", suffix="_ours")
    if not len(both) == len(theirs) == len(ours):
        raise DisagreementError(
            f"{scores} has {len(theirs)} steps and {run} {len(ours)}, of which {len(both)} are the "
            "same; both must score the same logs."
        )
    exact = {*LEXICAL, *(["U_step"] if lexical_only else [])}
    largest = {}
    for name in SCORES:
        differences = (both[name] - both[f"{name}_ours"]).abs()
        largest[name] = float(differences.max() or 0.0)  # type: ignore[arg-type]
        allowed = 0.0 if name in exact else SEMANTIC_TOLERANCE + ROUNDING_SLACK
        if not largest[name] <= allowed:
            worst = both.row(differences.arg_max() or 0, named=True)
            raise DisagreementError(
                f"{name} differs by {largest[name]:.2e} (at most {allowed:.0e}) at "
                f"{[worst[key] for key in KEYS]}: {worst[name]} and {worst[f'{name}_ours']}."
            )
    return Agreement(len(both), largest)
