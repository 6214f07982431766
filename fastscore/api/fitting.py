"""The suite that logs fit, named in the error of a suite that they do not fit."""

from collections.abc import Iterator
from contextlib import contextmanager

from fastscore.api.reading import inspect
from fastscore.errors import FastscoreError
from fastscore.logs.inputs.column_map import NO_MAP, UnmappedLogError
from fastscore.logs.inputs.files import STDIN
from fastscore.results.show_inspection import commands
from fastscore.run.config import RunConfig
from fastscore.suites.registry import load_suite


@contextmanager
def fitting_suite_named(config: RunConfig) -> Iterator[None]:
    """Name the suite that reads the logs as they are, if the run's own suite cannot.

    Raises
    ------
    UnmappedLogError
        That of the body; its hint is the command for the other suite.
    """
    try:
        yield
    except UnmappedLogError as error:
        mapped = config.columns != NO_MAP or STDIN in config.inputs
        hint = None if mapped or not config.inputs else _command_that_fits(config)
        error.hint = hint or error.hint
        raise


def _command_that_fits(config: RunConfig) -> str | None:
    """Return the sentence with the command; None if no other suite reads the logs as they are."""
    try:
        found = inspect(*config.inputs)
    except FastscoreError:
        return None
    fits = [fit for each in found.files for fit in each.fits]
    if any(fit.suite == config.suite for fit in fits):
        return None
    suites = {fit.suite: load_suite(fit.suite) for fit in fits}
    as_they_are = [fit.suite for fit in fits if not fit.flags]
    if not as_they_are:
        return None
    suite = as_they_are[0]
    return f"These logs fit {suite}. Type: `{commands(found, suites)[suite]}`"
