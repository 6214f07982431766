"""Where everything stands in a run directory."""

from pathlib import Path

SUMMARY_PARQUET = "summary.parquet"
SUMMARY_JSON = "summary.json"
RECEIPTS = "receipts"
REJECTS = "rejects"
CUT_TEXTS = "cut_texts"
UNKNOWN_WORDS = "unknown_words"
LEGACY = "legacy"
WORK = ".work"


def part_name(index: int) -> str:
    """Return the name of a shard's part in every table's folder."""
    return f"part-{index:05d}.parquet"


def texts_part(run: Path, index: int) -> Path:
    """Return where a shard's missing texts stand until they are embedded."""
    return run / WORK / "texts" / part_name(index)


def receipts_folder(run: Path, stage: str) -> Path:
    """Return where a stage's receipts stand; only those of ``score`` outlive the run."""
    return run / RECEIPTS if stage == "score" else run / WORK / RECEIPTS
