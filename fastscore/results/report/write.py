"""Writing a report: one HTML file that needs nothing from elsewhere and lets nothing in."""

import base64
import hashlib
from collections.abc import Sequence
from os import PathLike, fspath
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from fastscore.errors import UsageError
from fastscore.results.headlines import Headlines, read_headlines
from fastscore.results.report.charts import shortened
from fastscore.results.report.content import make_content
from fastscore.results.runs import Run, open_run
from fastscore.run.commit import commit_bytes
from fastscore.version import __version__

_PACKAGE = "fastscore.results.report"


def write_report(
    runs: Sequence[Run | str | PathLike[str]],
    output: str | PathLike[str],
    *,
    cluster: str | None = None,
    headlines: Sequence[Headlines] = (),
) -> Path:
    """Write a report on one run, or on several of a suite side by side.

    Parameters
    ----------
    runs
        Complete runs; the first is what the others are compared with.
    output
        The HTML file, replaced where there is one.
    cluster
        The column that names the units of intervals and tests in the findings, such as a user.
        Default: the dialogue.
    headlines
        The headline metrics of the runs, if they were read before; then `cluster` is theirs.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    UsageError
        No run, or runs of different suites.
    RunError
        A run is damaged, or another version of fastscore wrote it.
    """
    if not runs:
        raise UsageError("No run is named.", "Name one or more run directories.")
    opened = [run if isinstance(run, Run) else open_run(fspath(run)) for run in runs]
    for run in opened:
        run.require_declared()
    path = Path(output)
    if path.is_dir():
        raise UsageError(f"{path} is a folder.", "Name a file, such as report.html.")
    read = headlines or [read_headlines(run, cluster=cluster) for run in opened]
    commit_bytes(path, render(opened, read).encode())
    return path


def render(runs: Sequence[Run], headlines: Sequence[Headlines]) -> str:
    """Return the page's HTML."""
    environment = Environment(
        loader=PackageLoader(_PACKAGE, "templates"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["shortened"] = shortened
    style, script = (
        environment.loader.get_source(environment, name)[0]  # type: ignore[union-attr]
        for name in ("report.css", "report.js")
    )
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return environment.get_template("report.html").render(
        **make_content(runs, headlines),
        style=Markup(style),
        script=Markup(script),
        script_hash=f"sha256-{digest}",
        version=__version__,
    )
