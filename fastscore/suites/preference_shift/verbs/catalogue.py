"""``fastscore catalogue``: compiling a catalogue of items, and looking at what it holds."""

import click

from fastscore.terminal import write_line


@click.group("catalogue", epilog="Example: fastscore catalogue show movies.jsonl --field genre")
def command() -> None:
    """Compile catalogues of items, and show the concepts in them.

    Scoring compiles a catalogue by itself when it meets it first; compiled, it is kept in the
    cache under the hash of its content.
    """


@command.command("build", epilog="Example: fastscore catalogue build movies.json")
@click.argument("file")
def build(file: str) -> None:
    """Compile FILE (JSON, JSON Lines, CSV or Parquet, also .gz or .zst) into the cache."""
    from fastscore.suites.preference_shift.catalogue import catalogue_folder, load_catalogue

    catalogue = load_catalogue(file)
    write_line(f"{file}: {len(catalogue):,} items, {catalogue.terms.height:,} terms")
    write_line(f"compiled in {catalogue_folder(catalogue.digest)}")


@command.command("show", epilog="Example: fastscore catalogue show movies.json --field genre")
@click.argument("file")
@click.option("--field", help="Show the values of this field.  [default: all fields, counted]")
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show(file: str, field: str | None, limit: int, as_json: bool) -> None:
    """Show the fields of FILE, or the commonest values of one, with their IDF."""
    from fastscore.suites.preference_shift.catalogue import load_catalogue
    from fastscore.suites.preference_shift.catalogue_listing import (
        list_fields,
        list_values,
        show_listing,
    )

    catalogue = load_catalogue(file)
    listing = list_fields(catalogue) if field is None else list_values(catalogue, field).head(limit)
    show_listing(listing, as_json=as_json)
