"""Showing what logs hold, and the command that scores them."""

import dataclasses
import os
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence

from rich.console import Console

from fastscore.errors import UsageError
from fastscore.logs.inputs.column_samples import RequiredColumn
from fastscore.logs.inputs.files import FORMAT_NAMES
from fastscore.logs.inputs.inspection import InspectedFile, Inspection, key_rows, shapes
from fastscore.logs.inputs.layout import as_toml
from fastscore.options import flag_name, list_alternatives
from fastscore.results.number_text import counted
from fastscore.suites.base import Suite
from fastscore.terminal import plain
from fastscore.terminal.grids import Column, Grid, print_grid

_NAMED = 3


def commands(inspection: Inspection, suites: Mapping[str, Suite]) -> dict[str, str]:
    """Return the command to type for each suite that fits, those that fit most files first."""
    fitting: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for each in inspection.files:
        for fit in each.fits:
            fitting.setdefault((fit.suite, fit.flags), []).append(each.file.path)
    best: dict[str, str] = {}
    for (suite, flags), paths in sorted(fitting.items(), key=lambda item: -len(item[1])):
        if suite in best:
            continue
        # what does not fit at all is left aside of a folder
        others = [
            each
            for each in inspection.files
            if each.file.path not in paths and any(fit.suite == suite for fit in each.fits)
        ]
        inputs = _inputs(inspection, paths) if not others else paths
        required = [
            part
            for field in dataclasses.fields(suites[suite].options)
            if field.metadata.get("required")
            for part in (flag_name(field.name), "FILE")
        ]
        words = ["fastscore", "score", suite, *inputs, "-o", "run", *flags, *required]
        best[suite] = shlex.join(words)
    return best


def _inputs(inspection: Inspection, paths: Sequence[str]) -> list[str]:
    """Return the inputs in which the files are, as they were given."""
    return [
        given
        for given in inspection.inputs
        if not os.path.isfile(given)
        or os.path.realpath(given) in map(os.path.realpath, paths)
        or any(path.startswith(os.path.join(given, "")) for path in paths)
    ]


def layout_of(inspection: Inspection, suite: str) -> str:
    """Return the layout by which a suite reads the most files, as TOML.

    Raises
    ------
    UsageError
        The suite reads none of the files.
    """
    fits = [fit for each in inspection.files for fit in each.fits if fit.suite == suite]
    if not fits:
        known = dict.fromkeys(fit.suite for each in inspection.files for fit in each.fits)
        raise UsageError(
            f"No file of {', '.join(inspection.inputs)} can be read by {suite!r}.",
            f"Suites that can read them: {', '.join(known) or 'none'}.",
        )
    most = max(fits, key=lambda fit: sum(other.columns == fit.columns for other in fits))
    return as_toml(f"Logs like {inspection.inputs[0]}", most.columns, suite)


def show_inspection(console: Console, inspection: Inspection, suites: Mapping[str, Suite]) -> None:
    """Print the answer, the files of one shape together with their keys, and what to type."""
    typed = commands(inspection, suites)
    for line in _answer(inspection, typed):
        console.print(line, soft_wrap=True)
    console.print()
    for group in shapes(inspection.files):
        _show_shape(console, group)
    if inspection.others:
        console.print("No logs:")
        for path, reason in inspection.others.items():
            console.print(f"  {plain(path)}: {reason}", soft_wrap=True)
        console.print()
    console.print("Type:" if typed else "No suite can read any of it.")
    for command in typed.values():
        console.print(f"  {plain(command)}", soft_wrap=True)


def _answer(inspection: Inspection, typed: Mapping[str, str]) -> Iterator[str]:
    """Name the suites that read most, and how much of the first rows each would score."""
    n_files = len(inspection.files)
    for suite in typed:
        fits = [fit for each in inspection.files for fit in each.fits if fit.suite == suite]
        trials = [fit.trial for fit in fits if fit.trial]
        n_scored = sum(trial.n_scored for trial in trials)
        n_rejects = sum(trial.n_rejects for trial in trials)
        rejected = f", {counted(n_rejects, 'rejects')}" if n_rejects else ""
        of_files = f"{len(fits):,} of {counted(n_files, 'files')}"
        yield f"{suite} reads {of_files}: {n_scored:,} turns or steps of the first rows{rejected}"
    if not typed:
        yield "No suite can read any of it. `fastscore layouts` lists the layouts that are known."


def _show_shape(console: Console, group: Sequence[InspectedFile]) -> None:
    first = group[0]
    names = ", ".join(each.file.path for each in group[:_NAMED])
    more = f" and {len(group) - _NAMED:,} more" if len(group) > _NAMED else ""
    size = sum(each.file.size for each in group)
    packed = {each.file.compression for each in group} - {"none"}
    named = first.file.kind or FORMAT_NAMES[first.file.format]
    kind = named + "".join(f", {each}" for each in sorted(packed))
    console.print(f"{plain(names)}{more}", soft_wrap=True)
    rows = counted(first.found.rows, "rows")
    looked = f"all {rows}" if first.is_whole else f"the first {rows}"
    of_first = " of the first file" if len(group) > 1 else ""
    console.print(f"{counted(len(group), 'files')}, {kind}, {size:,} bytes; {looked}{of_first}")
    if first.found.keys:
        print_grid(console, _key_grid(first))
    for fit in first.fits:
        flags = f" with {shlex.join(fit.flags)}" if fit.flags else ""
        console.print(f"fits {fit.suite}{plain(flags)}", soft_wrap=True)
        for need in fit.lacking:
            _show_lack(console, need)
    for suite, reason in first.unfit.items():
        console.print(f"not {suite}: {plain(reason)}")
    console.print()


def _show_lack(console: Console, need: RequiredColumn) -> None:
    without = f"  without {' or '.join((need.place, *list_alternatives(need.column)))}"
    if need.column.needed_by:
        console.print(f"{without}, null everywhere: {', '.join(need.column.needed_by)}")
    if need.column.affects:
        console.print(f"{without}, scored all the same: {', '.join(need.column.affects)}")


def _key_grid(inspected: InspectedFile) -> Grid:
    rows = list(key_rows(inspected.found))
    types = tuple(", ".join(row["types"]) or "null" for row in rows)
    nulls = tuple(f"{row['null_share']:.0%}" for row in rows)
    return Grid(
        "",
        (
            Column("key", _texts(row["path"] for row in rows), right=False),
            Column("types", types, right=False),
            Column("in", _texts(f"{row['count']:,}" for row in rows), drop=1),
            Column("null", nulls, drop=0),
            Column("example", _texts(row["example"] for row in rows), right=False, wraps=True),
        ),
    )


def _texts(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(map(plain, texts))
