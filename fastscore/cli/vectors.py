"""``fastscore vectors``: looking after the stores of vectors."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fastscore.cli.command_types import SuggestingGroup
from fastscore.errors import EXIT_CHECK_FAILED
from fastscore.terminal import write_line, write_note
from fastscore.vectors.precisions import EXACT, PRECISIONS

if TYPE_CHECKING:
    from fastscore.vectors.stores import StoreListing


def _store_options(function: Callable[..., Any]) -> Callable[..., Any]:
    model = click.option(
        "--embedder",
        default="minilm-l6-v2",
        envvar="FASTSCORE_EMBEDDER",
        show_envvar=True,
        show_default=True,
        help="The model whose vectors are meant.",
    )
    precision = click.option(
        "--precision",
        type=click.Choice(PRECISIONS),
        default=EXACT,
        envvar="FASTSCORE_PRECISION",
        show_envvar=True,
        show_default=True,
        help="The precision in which they were computed.",
    )
    store = click.option(
        "--store",
        type=click.Path(path_type=Path),
        envvar="FASTSCORE_STORE",
        show_envvar=True,
        help="The folder of vector stores.  [default: in the cache]",
    )
    return model(precision(store(function)))


@click.group("vectors", cls=SuggestingGroup, epilog="Example: fastscore vectors stats")
def command() -> None:
    """Look after the stores of vectors, one store a model and precision.

    Every distinct text is embedded once. Later runs read its vector from the store.
    """


_STORES = click.option(
    "--store",
    type=click.Path(path_type=Path),
    envvar="FASTSCORE_STORE",
    show_envvar=True,
    help="The folder of vector stores.  [default: in the cache]",
)


@command.command("list", epilog="Example: fastscore vectors list --json")
@_STORES
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_(store: Path | None, as_json: bool) -> None:
    """List all stores with their models and sizes, the largest first."""
    from fastscore.vectors.stores import list_stores

    _write_stores(list_stores(store), as_json=as_json)


@command.command("prune", epilog="Example: fastscore vectors prune --yes")
@_STORES
@click.option("--yes", is_flag=True, help="Remove them. Without it they are only listed.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def prune(store: Path | None, yes: bool, as_json: bool) -> None:
    """Remove the stores whose vectors no exported model computes."""
    from fastscore.vectors.stores import prune_stores

    found = prune_stores(store, dry_run=not yes)
    _write_stores(found, as_json=as_json)
    done = "removed" if yes else "not removed: add --yes"
    write_note(f"{len(found):,} stores of no exported model, {done}")


def _write_stores(stores: "Sequence[StoreListing]", *, as_json: bool) -> None:
    if as_json:
        rows = [{**asdict(each), "folder": str(each.folder)} for each in stores]
        write_line(json.dumps(rows, indent=2))
        return
    for each in stores:
        name = f"{each.model} {each.precision}" if each.model else "no exported model"
        write_line(f"{name:<32} {each.vectors:>12,} vectors {each.bytes:>15,} bytes  {each.folder}")


@command.command("stats", epilog="Example: fastscore vectors stats")
@_store_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def stats(embedder: str, precision: str, store: Path | None, as_json: bool) -> None:
    """Count vectors, segments and bytes."""
    from fastscore.vectors.models import open_store

    found = open_store(embedder, store, precision).stats()
    if as_json:
        write_line(json.dumps({**asdict(found), "folder": str(found.folder)}, indent=2))
        return
    write_line(
        f"{found.vectors:,} vectors in {found.segments:,} segments, {found.bytes:,} bytes, "
        f"{found.damaged:,} segments set aside as damaged: {found.folder}"
    )


@command.command(
    "nearest",
    short_help="Find the texts of runs that are nearest in meaning to a text.",
    epilog="Example: fastscore vectors nearest 'a quiet place' --run plans -k 10",
)
@click.argument("text")
@click.option(
    "--run",
    "runs",
    multiple=True,
    required=True,
    type=click.Path(path_type=Path),
    help="A run whose texts are searched. Repeatable.",
)
@click.option("-k", "k", type=click.IntRange(min=1), default=10, show_default=True)
@_store_options
def nearest(
    text: str, runs: tuple[Path, ...], k: int, embedder: str, precision: str, store: Path | None
) -> None:
    """Find the texts of the runs' logs that the embedder calls nearest to TEXT, by cosine.

    The store holds vectors without texts: these are read again from the runs' logs.
    """
    from fastscore.results.dialogues import nearest_texts
    from fastscore.results.runs import open_run
    from fastscore.terminal import result_console
    from fastscore.terminal.grids import Column, Grid, print_grid

    found = nearest_texts(
        text, [open_run(run) for run in runs], k, embedder=embedder, precision=precision, root=store
    )
    cosines = tuple(f"{cosine:.4f}" for cosine in found["cosine"])
    columns = (
        Column("cosine", cosines),
        Column("text", tuple(found["text"]), right=False, wraps=True),
    )
    print_grid(result_console(), Grid("", columns))


@command.command(
    "verify",
    short_help="Compare every vector with its checksum.",
    epilog="Example: fastscore vectors verify --store store",
)
@_store_options
@click.pass_context
def verify(ctx: click.Context, embedder: str, precision: str, store: Path | None) -> None:
    """Read every vector and compare it with its checksum; damaged segments are set aside."""
    from fastscore.vectors.models import open_store

    check = open_store(embedder, store, precision).verify()
    write_line(f"{check.vectors:,} vectors in {check.segments:,} segments are intact")
    for name, reason in check.damaged:
        write_note(f"{name}: {reason}; set aside, its texts will be embedded again")
    if check.damaged:
        ctx.exit(EXIT_CHECK_FAILED)


@command.command(
    "compact",
    short_help="Merge small segments, drop what is held twice.",
    epilog="Example: fastscore vectors compact",
)
@_store_options
def compact(embedder: str, precision: str, store: Path | None) -> None:
    """Merge small segments and drop vectors that are held twice; safe while others score."""
    from fastscore.vectors.models import open_store

    found = open_store(embedder, store, precision).compact()
    write_line(f"{found.vectors:,} vectors in {found.segments:,} segments, {found.bytes:,} bytes")
