"""What a compiled catalogue holds, as a person reads it."""

import json

import polars as pl

from fastscore.errors import UsageError, nearest
from fastscore.suites.preference_shift.catalogue import Catalogue, inverse_document_frequency
from fastscore.terminal import result_console, write_line
from fastscore.terminal.grids import Column, Grid, print_grid


def list_fields(catalogue: Catalogue) -> pl.DataFrame:
    """Return one row a field: how many values it has, in how many items, and the commonest.

    Returns
    -------
    pl.DataFrame
        ``field``, ``values``, ``items``, ``commonest`` (its normal form), and ``problem``: why the
        field cannot be used, null where it can.
    """
    usable = (
        catalogue.terms.sort("n_items", descending=True, maintain_order=True)
        .group_by("field", maintain_order=True)
        .agg(
            pl.len().cast(pl.Int64).alias("values"),
            pl.col("items").list.explode().n_unique().cast(pl.Int64).alias("items"),
            pl.col("value").first().alias("commonest"),
        )
        .with_columns(pl.lit(None, dtype=pl.String).alias("problem"))
    )
    order = {name: place for place, name in enumerate(catalogue.fields)}
    unusable = pl.DataFrame(
        [(name, 0, 0, None, problem) for name, problem in catalogue.unusable.items()],
        schema=usable.schema,
        orient="row",
    )
    ordered = usable.sort(pl.col("field").replace_strict(order, return_dtype=pl.Int64))
    return pl.concat([ordered, unusable])


def list_values(catalogue: Catalogue, field: str) -> pl.DataFrame:
    """Return the values of a field, the commonest first.

    Returns
    -------
    pl.DataFrame
        ``value`` (normal form), ``surface`` (as first written), ``n_items`` and ``idf``.

    Raises
    ------
    UsageError
        The catalogue has no such field, or it cannot be used.
    """
    terms = catalogue.field_terms(field)
    if terms.is_empty():
        raise UsageError(f"The catalogue has no field {field!r}.", nearest(field, catalogue.fields))
    idf = [inverse_document_frequency(len(catalogue), n) for n in terms["n_items"].to_list()]
    return terms.select("value", "surface", "n_items", pl.Series("idf", idf)).sort(
        "n_items", descending=True, maintain_order=True
    )


def show_listing(listing: pl.DataFrame, *, as_json: bool) -> None:
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
