"""Showing a judge's summary in a terminal."""

import sys
from pathlib import Path
from typing import Any

import orjson
from rich.console import Console
from rich.table import Table


def show_judgements(summary: dict[str, Any], folder: Path, *, as_json: bool) -> None:
    """Print the summary: as JSON, or a table a dimension and what was rejected."""
    if as_json:
        sys.stdout.write(orjson.dumps(summary, option=orjson.OPT_INDENT_2).decode() + "\n")
        return
    console = Console(highlight=False)
    low, high = summary["scale"]
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("dimension", "n", "mean", "95 % interval", "alpha", "agree", "length rho"):
        table.add_column(name, justify="left" if name == "dimension" else "right")
    for name, found in summary["dimensions"].items():
        interval = f"{_number(found['low'])} to {_number(found['high'])}"
        rest = (found["alpha"], found["all_repeats_agree"], found["length_rho"])
        table.add_row(
            name, f"{found['n']:,}", _number(found["mean"]), interval, *map(_number, rest)
        )
    console.print(table)
    console.print(
        f"{summary['dialogues_judged']:,} of {summary['dialogues']:,} dialogues judged by "
        f"{summary['model']} on {low} to {high}; {summary['repeats_rejected']:,} repeats rejected",
        markup=False,
    )
    console.print(f"files      {folder}", markup=False)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"
