"""Runs as datasets of the Hugging Face library."""

import json
from os import PathLike
from pathlib import Path

import polars as pl

from fastscore.files import check_output
from fastscore.loggers import numbers_of
from fastscore.results.runs import Run, as_run

CARD = "README.md"


def push(run: Run | str | PathLike[str], folder: str | PathLike[str]) -> Path:
    """Write a run as a dataset with a card: one configuration for each table and the summary.

    ``datasets.load_dataset(folder, "dialogues")`` reads it, and ``huggingface-cli upload`` takes
    the folder. Nothing is sent by this function.

    Parameters
    ----------
    run
        A complete run, or its directory.
    folder
        A new or empty folder.

    Returns
    -------
    Path
        The card.

    Raises
    ------
    RunConflictError
        The folder contains files.
    """
    opened, target = as_run(run), Path(folder)
    check_output(target, "a data set", alone=True)
    tables = {"summary": opened.summary, **opened.tables}
    kept = {name: frame for name, frame in tables.items() if frame.width}
    (target / "data").mkdir(parents=True, exist_ok=True)
    for name, frame in kept.items():
        # other readers know no enumerations
        portable = frame.cast({one: _without_enumerations(of) for one, of in frame.schema.items()})
        portable.write_parquet(target / "data" / f"{name}.parquet")
    card = target / CARD
    card.write_text(_card(opened, list(kept)), encoding="utf-8")
    return card


def _without_enumerations(dtype: pl.DataType) -> pl.DataType:
    if isinstance(dtype, pl.Enum | pl.Categorical):
        return pl.String()
    if isinstance(dtype, pl.List):
        return pl.List(_without_enumerations(dtype.inner))  # type: ignore[arg-type]
    if isinstance(dtype, pl.Struct):
        fields = {field.name: field.dtype for field in dtype.fields}
        return pl.Struct(
            {name: _without_enumerations(kind) for name, kind in fields.items()}  # type: ignore[arg-type]
        )
    return dtype


def _card(run: Run, tables: list[str]) -> str:
    lines = ["---", "configs:"]
    for name in tables:
        lines += [f"- config_name: {name}", f"  data_files: data/{name}.parquet"]
        if name == "summary":
            lines.append("  default: true")
    lines += ["tags:", "- dialogue", "- evaluation", "---", "", f"# {run.suite.title}", ""]
    lines += [f"Scores of the suite `{run.manifest.suite}`, computed by fastscore.", ""]
    lines += ["```text", run.signature, "```", "", "| Metric | Mean |", "|---|---|"]
    names = {metric.id for metric in run.suite.metrics}
    means = {name: value for name, value in numbers_of(run).items() if name in names}
    lines += [f"| `{name}` | {value:.6g} |" for name, value in means.items()]
    lines += ["", f"Options: `{json.dumps(run.manifest.options, sort_keys=True)}`", ""]
    return "\n".join(lines)
