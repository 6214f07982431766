"""Judged chats as a run: a folder of `fastscore judge`, with its rubric's dimensions as metrics."""

from dataclasses import make_dataclass
from pathlib import Path
from typing import Any, Never

import orjson
import polars as pl

from fastscore.errors import InputError, RunError, UsageError, counted
from fastscore.files import hash_bytes
from fastscore.run.commit import CUT_TEXTS, REJECTS, SUMMARY_JSON
from fastscore.run.manifest import MANIFEST_NAME, Manifest
from fastscore.run.scoring import CUT_SCHEMA
from fastscore.run.signature import signature
from fastscore.suites.base import Suite
from fastscore.suites.chats import CHATS
from fastscore.suites.declarations import (
    LABEL_TABLE,
    NULL_REASONS_DTYPE,
    REJECTS_TABLE,
    Column,
    Design,
    Formula,
    Metric,
    OutputColumn,
    Scale,
    Source,
    Table,
)
from fastscore.suites.registry import declare_scored
from fastscore.suites.summary import ALL, summarise

JUDGEMENTS = "judgements.jsonl"
"""In a folder of `fastscore judge`: the scores."""

_LABELS = {
    "file": OutputColumn("file", pl.String(), "The log."),
    "line": OutputColumn("line", pl.Int64(), "The first line."),
    "dialogue": OutputColumn("dialogue", pl.String(), "The dialogue's name, unique in the run."),
    "id": OutputColumn("id", pl.String(), "The dialogue's id, which pairs have in common."),
    "model": OutputColumn("model", pl.String(), "The system that spoke.", nullable=True),
    "unit": OutputColumn("unit", pl.String(), "The unit of intervals."),
}

TAKEN = (*_LABELS, "null_reasons", "row", "name", "label", ALL)
"""Names that no dimension of a rubric can have: tables of runs and pages use them."""


def read_judged(folder: Path) -> tuple[Manifest, dict[str, pl.DataFrame], pl.DataFrame]:
    """Return manifest, tables and summary of a judge's scores, whose suite is known from now on."""
    about, spent = _read(folder / SUMMARY_JSON), _read(folder / MANIFEST_NAME)
    # manifests of older releases say only whether all was judged
    if spent.get("too_many_failures", spent.get("status") != "complete"):
        n, of = about["dialogues_judged"], about["dialogues"]
        raise RunError(
            f"{folder}: the judge is not complete: {n:,} of {of:,} dialogues have scores.",
            "Type its command again. With max_failures 1 it accepts what failed.",
        )
    dialogues = _dialogues(folder / JUDGEMENTS, [*about["dimensions"]])
    suite = _declared(about)
    options = suite.options()
    judge = [f"{name}={about.get(name)}" for name in ("model", "temperature", "repeats")]
    manifest = Manifest(
        signature=signature(suite, options, None, [f"rubric={about['rubric_hash']}", *judge]),
        suite=suite.name,
        suite_version=suite.version,
        options={},
        column_map={},
        status="complete",
        inputs=[_described(folder / JUDGEMENTS)],
        counts={
            "lines": about.get("log_rows", about["dialogues"] + about.get("log_rows_rejected", 0)),
            "rejects": about.get("log_rows_rejected", 0),
            "dialogues": dialogues.height,
        },
        tables={LABEL_TABLE: {"rows": dialogues.height, "parts": 1}},
    )
    if lost := about["dialogues"] - about["dialogues_judged"]:
        manifest.notes.append(
            f"{lost:,} of {about['dialogues']:,} dialogues have no score: see "
            f"{folder / 'failures.jsonl'}"
        )
    rejects = pl.DataFrame(schema=REJECTS_TABLE)
    if rejected := about.get("log_rows_rejected"):
        manifest.notes.append(f"{counted(rejected, 'lines')} of the logs could not be read")
        found = "counted by the judge, which keeps none of them"
        row = {"file": ", ".join(about["inputs"]), "reason": "not_judged", "found": found}
        rejects = pl.DataFrame([row | {"count": rejected}], REJECTS_TABLE)
    cut = pl.DataFrame(schema=CUT_SCHEMA)
    frames = _Frames({LABEL_TABLE: dialogues, REJECTS: rejects, CUT_TEXTS: cut})
    frames.about = about
    return manifest, frames, summarise(suite, {LABEL_TABLE: dialogues.lazy()}, options)


class _Frames(dict[str, pl.DataFrame]):
    """The tables. A process that unpickles them knows the suite, too."""

    about: dict[str, Any]

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (dict(self), self.about)


def _unpickled(tables: dict[str, pl.DataFrame], about: dict[str, Any]) -> _Frames:
    _declared(about)
    frames = _Frames(tables)
    frames.about = about
    return frames


def _declared(about: dict[str, Any]) -> Suite:
    suite = _suite(about)
    declare_scored(suite)
    return suite


def _read(file: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = orjson.loads(file.read_bytes())
    except (OSError, orjson.JSONDecodeError) as error:
        raise _damaged(file, error) from error
    of_judge = {"dimensions", "suite"} if file.name == SUMMARY_JSON else set()
    if not isinstance(found, dict) or not of_judge <= found.keys():
        raise _damaged(file, "not what a judge writes")
    return found


def _damaged(file: Path, why: object) -> RunError:
    return RunError(
        f"{file}: missing or damaged ({why}).",
        "Type the command of `fastscore judge` again: no answer is asked for twice.",
    )


def _dialogues(file: Path, dimensions: list[str]) -> pl.DataFrame:
    """Return a row a dialogue with its labels and the means of its scores."""
    if not file.stat().st_size:
        raise InputError(f"{file}: no dialogue has a score.", "failures.jsonl beside it says why.")
    if taken := sorted({*dimensions} & {*TAKEN}):
        raise RunError(
            f"{file}: a dimension is called {taken[0]!r}, as a column of every run.",
            "Give it another name in the rubric, and judge again.",
        )
    try:
        return _rows(pl.read_ndjson(file, infer_schema_length=None), dimensions)
    except pl.exceptions.PolarsError as error:
        raise _damaged(file, error) from error


def _rows(read: pl.DataFrame, dimensions: list[str]) -> pl.DataFrame:
    if "unit" not in read.columns:
        read = read.with_columns(unit="dialogue")
    id, model = pl.col("dialogue"), pl.col("model").cast(pl.String)
    place = pl.format("/in={}:{}", "judged_file", "judged_line")
    name = id + pl.format("/model={}", model).fill_null("")  # as runs name dialogues
    score = pl.col("judge").struct.field
    return read.select(
        pl.col("judged_file").alias("file"),
        pl.col("judged_line").alias("line"),
        pl.when(name.is_duplicated()).then(name + place).otherwise(name).alias("dialogue"),
        id.alias("id"),
        model,
        pl.col("unit"),
        *(score(name).cast(pl.Float64).alias(name) for name in dimensions),
        pl.lit(None, NULL_REASONS_DTYPE).alias("null_reasons"),
    )


def _suite(about: dict[str, Any]) -> Suite:
    """Make the suite of a rubric and what it judged; equal names are equal suites."""
    low, high = about["scale"]
    asked = dict.fromkeys(about["dimensions"], "") | about.get("questions", {})
    judged = () if about["suite"] == CHATS else (about["suite"],)
    name = ":".join(("judge", *judged, about["rubric"], about["rubric_hash"][:8]))
    metrics = [
        Metric(
            id=id,
            name=id,
            formula=Formula(text=f"mean over repeats of the judge's score. {asked[id]}".strip()),
            scale=Scale("higher", minimum=low, maximum=high),
            source=f"the rubric {about['rubric']}",
            role="headline",
        )
        for id in about["dimensions"]
    ]
    columns = [
        OutputColumn(one.id, pl.Float64(), asked[one.id] or one.id, metric=one.id)
        for one in metrics
    ]
    reasons = OutputColumn("null_reasons", NULL_REASONS_DTYPE, "Why metrics are null.")
    return Suite(
        name=name,
        package=__name__,
        title=f"Scores from {low} to {high} by a chat model and the rubric {about['rubric']}",
        version=1,
        options=make_dataclass("Judged", [], namespace={"suite": name}, frozen=True),
        source=Source(columns=(Column("id", "text"),), dialogue_key=("id",)),
        tables=(
            Table(
                name=LABEL_TABLE, grain="a dialogue", columns=(*_LABELS.values(), *columns, reasons)
            ),
        ),
        metrics=tuple(metrics),
        # chats have no units but themselves
        design=Design(pair=("id",), unit=("unit",) if judged else (), groups=("model",)),
        read=_only_judged,
        score=_only_judged,
    )


def _described(file: Path) -> dict[str, Any]:
    content = file.read_bytes()
    return {"name": str(file), "bytes": len(content), "content_hash": hash_bytes(content)}


def _only_judged(*given: Any) -> Never:
    raise UsageError("A judge's scores are read, never computed.", "Type `fastscore judge`.")
