"""Showing a judge's summary in a terminal."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import orjson

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
    failed, not_asked = summary["dialogues_failed"], summary["dialogues_not_asked"]
    if failed or not_asked:
        kinds = ", ".join(f"{n:,} {kind}" for kind, n in summary["failures"].items())
        console.print(
            f"{failed:,} failed ({kinds}), {not_asked:,} not asked: see failures.jsonl; the same "
            "command asks again"
        )
    console.print(f"files      {folder}")


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


_COLUMNS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "n": lambda found: f"{found['n']:,}",
    "mean": lambda found: _number(found["mean"]),
    "95 % interval": lambda found: f"{_number(found['low'])} to {_number(found['high'])}",
    "ordinal alpha": lambda found: _number(found["alpha_ordinal"]["value"]),
    "agree": lambda found: _number(found["all_repeats_agree"]),
    "length rho": lambda found: _number(found["length_rho"]),
}
