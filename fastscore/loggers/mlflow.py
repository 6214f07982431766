"""Runs in MLflow."""

from contextlib import nullcontext
from os import PathLike

from fastscore.loggers import numbers_of, options_of
from fastscore.results.runs import Run, as_run
from fastscore.settings.extras import load


def log_run(run: Run | str | PathLike[str], *, name: str | None = None) -> str:
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
