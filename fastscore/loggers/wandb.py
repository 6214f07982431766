"""Runs in Weights & Biases."""

from os import PathLike

from fastscore.loggers import numbers_of, options_of
from fastscore.results.runs import Run, as_run
from fastscore.settings.extras import load


def log_run(
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
