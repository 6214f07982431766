"""``fastscore models``: which models there are, and making them ready."""

from pathlib import Path

import click


@click.group("models", epilog="Example: fastscore models export minilm-l6-v2")
def command() -> None:
    """List, export and verify embedding models.

    Exporting is the only step that may use the network; scoring never does.
    """


@command.command("list", epilog="Example: fastscore models list")
def list_() -> None:
    """List the models: name, widths, pooling, licence, whether exported."""
    from fastscore.vectors.models import list_models

    for listing in list_models():
        click.echo(listing.line)


@command.command(
    "export",
    short_help="Build a model's ONNX file into the cache.",
    epilog="Example: fastscore models export mxbai-embed-large-v1 -f DIR",
)
@click.argument("name")
@click.option(
    "-f",
    "--folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Take config.json, model.safetensors and tokenizer.json from this folder.",
)
def export(name: str, folder: Path | None) -> None:
    """Build the ONNX file of NAME, a recipe or the path of a recipe file, into the cache."""
    from fastscore.vectors.models import export_model

    exported = export_model(name, folder)
    click.echo(f"{exported.recipe.name} is in {exported.folder}")


@command.command("verify", epilog="Example: fastscore models verify minilm-l6-v2")
@click.argument("name")
def verify(name: str) -> None:
    """Check the files of NAME and its vector for a test sentence."""
    from fastscore.vectors.models import verify_model

    exported, difference = verify_model(name)
    click.echo(
        f"{exported.recipe.name}: files intact, test vector within {difference:.1e} "
        f"(ONNX SHA-256 {exported.onnx_sha256})"
    )
