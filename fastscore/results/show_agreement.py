"""Showing agreement of raters: two tables, or every value as CSV or JSON."""

import json

import polars as pl

from fastscore.results.agreement import Agreement
from fastscore.results.spreadsheet import write_csv
from fastscore.terminal import result_console, write
from fastscore.terminal.grids import (
    Column,
    Format,
    Grid,
    latex,
    markdown,
    print_grid,
    print_notes,
)

_REASONS = {
    "too_few_values": "too few dialogues",
    "zero_variance": "all scores are equal",
    "no_disagreement": "no disagreement",
}


def show_agreement(found: Agreement, *, format: Format = "table") -> None:
    """Print the agreement of raters.

    Parameters
    ----------
    found
        Their agreement.
    format
        ``csv`` and ``json`` hold every value at full precision.
    """
    if format == "json":
        content = {
            "raters": list(found.raters),
            "pairs": found.pairs.to_dicts(),
            "alphas": found.alphas.to_dicts(),
            "notes": list(found.notes),
        }
        write(json.dumps(content, indent=2, ensure_ascii=False) + "\n")
        return
    if format == "csv":
        write(write_csv(pl.concat([found.pairs, found.alphas], how="diagonal")))
        return
    grids = [_pairs_grid(found.pairs), _alphas_grid(found.alphas)]
    if format == "table":
        console = result_console()
        for grid in grids:
            print_grid(console, grid)
            console.print()
        print_notes(console, found.notes)
    else:
        write("\n".join(map(markdown if format == "markdown" else latex, grids)))


def _pairs_grid(pairs: pl.DataFrame) -> Grid:
    columns = (
        _texts("dimension", pairs["dimension"]),
        _texts("first", pairs["first"]),
        _texts("second", pairs["second"]),
        _numbers("n", pairs["n"], "{:,}"),
        _numbers("kappa", pairs["kappa"], "{:.3f}"),
        _intervals(pairs),
        _numbers("difference", pairs["difference"], "{:+.3f}"),
    )
    return Grid("Each pair of raters: Cohen's kappa with quadratic weights", columns)


def _alphas_grid(alphas: pl.DataFrame) -> Grid:
    columns = (
        _texts("dimension", alphas["dimension"]),
        _texts("distance", alphas["distance"]),
        _numbers("raters", alphas["raters"], "{:,}"),
        _numbers("n", alphas["n"], "{:,}"),
        _numbers("alpha", alphas["alpha"], "{:.3f}"),
        _intervals(alphas),
    )
    return Grid("All raters: Krippendorff's alpha", columns)


def _texts(header: str, values: pl.Series) -> Column:
    return Column(header, tuple(values), right=False, wraps=True)


def _numbers(header: str, values: pl.Series, form: str) -> Column:
    return Column(header, tuple("-" if one is None else form.format(one) for one in values))


def _intervals(rows: pl.DataFrame) -> Column:
    """Write both ends, or the reason why there are none."""
    cells = tuple(
        f"{low:.3f} to {high:.3f}" if low is not None else _REASONS[reason]
        for low, high, reason in rows.select("low", "high", "reason").iter_rows()
    )
    return Column("95 % interval", cells)
