"""``fastscore catalogue``: looking at what a catalogue of items holds."""

import json

import click
import polars as pl

from fastscore.terminal import result_console, write_line
from fastscore.terminal.grids import Column, Grid, print_grid


@click.group("catalogue", epilog="Example: fastscore catalogue show movies.jsonl --field genre")
def command() -> None:
    """Show the concepts in catalogues of items."""


@command.command("show", epilog="Example: fastscore catalogue show movies.json --field genre")
@click.argument("file")
@click.option("--field", help="Show the values of this field.  [default: all fields, counted]")
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show(file: str, field: str | None, limit: int, as_json: bool) -> None:
    """Show the fields of FILE, or the values of one with their IDF.

    FILE is JSON, JSON Lines, CSV or Parquet, also .gz or .zst.
    """
    from fastscore.suites.preference_shift.catalogue import list_fields, list_values, load_catalogue

    catalogue = load_catalogue(file)
    listing = list_fields(catalogue) if field is None else list_values(catalogue, field).head(limit)
    _show_listing(listing, as_json=as_json)


def _show_listing(listing: "pl.DataFrame", *, as_json: bool) -> None:
    """Print a listing as a table or as JSON."""
    if as_json:
        write_line(json.dumps(listing.to_dicts(), ensure_ascii=False, indent=2))
        return
    shown = [column for column in listing.columns if listing[column].null_count() < listing.height]
    columns = tuple(
        Column(
            name,
            tuple(map(_cell, listing[name])),
            right=listing[name].dtype.is_numeric(),
            wraps=listing[name].dtype == pl.String,
        )
        for name in shown
    )
    print_grid(result_console(), Grid("", columns))


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.4f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
