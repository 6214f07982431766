"""Runs in the places where people keep results: MLflow, Weights & Biases, and datasets."""

import json
from contextlib import nullcontext
from os import PathLike
from pathlib import Path
from typing import Any

import polars as pl

from fastscore.files import check_output
from fastscore.results.runs import Run, as_run
from fastscore.settings.extras import load
from fastscore.suites.summary import overall_rows

CARD = "README.md"


def log_to_mlflow(run: Run | str | PathLike[str], *, name: str | None = None) -> str:
    """Log a run to MLflow: options as parameters, means and intervals as metrics.

    The active MLflow run is used, or a new one in the active experiment. The summary is an
    artifact, ``fastscore/summary.json``, and the signature is a tag.

    Parameters
    ----------
    run
        A complete run, or its directory.
    name
        The name of a new MLflow run.

    Returns
    -------
    str
        The id of the MLflow run.

    Raises
    ------
    UsageError
        The package mlflow is not installed.
    """
    mlflow = load("mlflow", "Logging to MLflow")
    opened = as_run(run)
    options = options_of(opened)
    active = mlflow.active_run()
    with nullcontext(active) if active else mlflow.start_run(run_name=name) as logged:
        mlflow.set_tag("fastscore.signature", options.pop("signature"))
        mlflow.log_params(options)
        mlflow.log_metrics(numbers_of(opened))
        mlflow.log_text(opened.summary_json, "fastscore/summary.json")
        return str(logged.info.run_id)


def log_to_wandb(
    run: Run | str | PathLike[str], *, project: str | None = None, name: str | None = None
) -> str:
    """Log a run to Weights & Biases: options as config, means and intervals as its summary.

    The active run of the service is used. Without one, a run is started and finished. Set
    ``WANDB_MODE=offline`` to write files only.

    Parameters
    ----------
    run
        A complete run, or its directory.
    project, name
        Those of a new run of the service.

    Returns
    -------
    str
        The id of the run of the service.

    Raises
    ------
    UsageError
        The package wandb is not installed.
    """
    wandb = load("wandb", "Logging to Weights & Biases")
    opened = as_run(run)
    active = wandb.run
    logged = active or wandb.init(project=project, name=name)
    try:
        logged.config.update({"fastscore": options_of(opened)})
        logged.summary.update(numbers_of(opened))
        return str(logged.id)
    finally:
        if active is None:
            logged.finish()


def write_dataset(run: Run | str | PathLike[str], folder: str | PathLike[str]) -> Path:
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


def numbers_of(run: Run) -> dict[str, float]:
    """Return each metric's mean over all dialogues and the ends of its interval, if not null.

    The names are ``metric``, ``metric.ci_low`` and ``metric.ci_high``.
    """
    columns = {"": "mean", ".ci_low": "ci_low", ".ci_high": "ci_high"}
    return {
        f"{metric}{end}": row[column]
        for metric, row in overall_rows(run.summary).items()
        for end, column in columns.items()
        if row[column] is not None
    }


def options_of(run: Run) -> dict[str, Any]:
    """Return the run's suite, its options and its signature."""
    return {
        "suite": run.manifest.suite,
        **run.manifest.options,
        "signature": run.signature,
    }
