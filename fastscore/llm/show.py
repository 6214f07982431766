"""Showing a judge's summary in a terminal."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import orjson
from rich.console import Console

from fastscore.errors import counted
from fastscore.terminal import result_console, write_line
from fastscore.terminal.grids import Column, Grid, print_grid


def show_judgements(summary: dict[str, Any], folder: Path, *, as_json: bool) -> None:
    """Print the summary: as JSON, or a table of dimensions and the failures."""
    if as_json:
        write_line(orjson.dumps(summary, option=orjson.OPT_INDENT_2).decode())
        return
    console = result_console()
    low, high = summary["scale"]
    dimensions = summary["dimensions"]
    columns = (
        Column("dimension", tuple(dimensions), right=False, wraps=True),
        *(
            Column(header, tuple(write(found) for found in dimensions.values()))
            for header, write in _COLUMNS.items()
        ),
    )
    print_grid(console, Grid("", columns))
    console.print(
        f"{summary['dialogues_judged']:,} of {summary['dialogues']:,} dialogues judged by "
        f"{summary['model']} on {low} to {high}"
    )
    _print_end(console, summary, "dialogues", folder)


def show_pairs(summary: dict[str, Any], folder: Path, *, as_json: bool) -> None:
    """Print the summary of judged pairs: as JSON, or a table of dimensions and the failures."""
    if as_json:
        write_line(orjson.dumps(summary, option=orjson.OPT_INDENT_2).decode())
        return
    console = result_console()
    dimensions = summary["dimensions"]
    columns = (
        Column("dimension", tuple(dimensions), right=False, wraps=True),
        *(
            Column(header, tuple(write(found) for found in dimensions.values()))
            for header, write in _PAIR_COLUMNS.items()
        ),
    )
    print_grid(console, Grid("", columns))
    console.print(
        f"{summary['pairs_judged']:,} of {summary['pairs']:,} pairs judged by {summary['model']}, "
        "the win rate is A's; "
        f"{counted(summary['only_in_a'], 'dialogues')} only in A, {summary['only_in_b']:,} in B"
    )
    _print_end(console, summary, "pairs", folder)


def _print_end(console: Console, summary: dict[str, Any], noun: str, folder: Path) -> None:
    failed, not_asked = summary[f"{noun}_failed"], summary[f"{noun}_not_asked"]
    if failed or not_asked:
        kinds = ", ".join(f"{n:,} {kind}" for kind, n in summary["failures"].items())
        console.print(
            f"{failed:,} failed ({kinds}), {not_asked:,} not asked: see failures.jsonl; the same "
            "command asks again"
        )
    console.print(f"files      {folder}")


def _interval(found: Mapping[str, Any], digits: int = 4) -> str:
    low, high = found["low"], found["high"]
    return "-" if low is None else f"{low:.{digits}f} to {high:.{digits}f}"


def _number(value: float | None, digits: int = 4) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


_COLUMNS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "n": lambda found: f"{found['n']:,}",
    "mean": lambda found: _number(found["mean"]),
    "95 % interval": _interval,
    "ordinal alpha": lambda found: _number(found["alpha_ordinal"]["value"]),
    "agree": lambda found: _number(found["all_repeats_agree"]),
    "length rho": lambda found: _number(found["length_rho"]),
}

_PAIR_COLUMNS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "n": lambda found: f"{found['n']:,}",
    "A, ties, B": lambda found: f"{found['wins']:,}, {found['ties']:,}, {found['losses']:,}",
    "win rate": lambda found: _number(found["win_rate"], 3),
    "95 % interval": lambda found: _interval(found, 3),
    "p": lambda found: _number(found["p"], 3),
    "consistent": lambda found: _number(found["consistency"], 3),
}
