"""``fastscore models``: which models there are, and making them ready."""

from pathlib import Path

import click

from fastscore.cli.command_types import SuggestingGroup
from fastscore.errors import UsageError
from fastscore.terminal import write_line, write_note
from fastscore.vectors.precisions import EXACT, PRECISIONS


@click.group("models", cls=SuggestingGroup, epilog="Example: fastscore models export minilm-l6-v2")
def command() -> None:
    """List, export and verify embedding models.

    Only the export uses the network. Scoring works offline.
    """


@command.command("list", epilog="Example: fastscore models list")
def list_() -> None:
    """List the models: name, widths, pooling, licence, whether exported, measured accuracy."""
    from fastscore.vectors.models import list_masked_models, list_models

    for listing in list_models():
        write_line(listing.line)
        for accuracy in listing.accuracies:
            write_line(f"    {accuracy.precision} against fp32: {accuracy}")
    for line in list_masked_models():
        write_line(line)


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
@click.option(
    "--task",
    type=click.Choice(["embedding", "fill-mask"]),
    default="embedding",
    show_default=True,
    help="What the model does. Fill-mask is for --pppl-model.",
)
@click.option(
    "--precision",
    type=click.Choice([EXACT, "int8"]),
    default=EXACT,
    show_default=True,
    help="int8 builds the model's int8 form as well, calibrated on real dialogue.",
)
@click.option(
    "--name", "alias", help="The name of a model without a recipe.  [default: the folder's]"
)
def export(name: str, folder: Path | None, task: str, precision: str, alias: str | None) -> None:
    """Build the ONNX file of NAME into the cache.

    For the task embedding, NAME is a recipe, the path of a recipe file, or a model in the layout of
    sentence-transformers: its folder, or its id on the Hugging Face hub (needs huggingface_hub).
    For fill-mask it is the folder of a masked language model.
    """
    from fastscore.vectors.calibration import export_int8
    from fastscore.vectors.models import export_masked_model, export_model

    if task == "fill-mask":
        if precision != EXACT:
            raise UsageError("--precision is for --task embedding.")
        masked = export_masked_model(folder or Path(name), alias)
        write_line(f"{masked.name} is in {masked.folder}")
        return
    exported = export_model(name, folder, alias=alias, tell=write_note)
    write_line(f"{exported.recipe.name} is in {exported.folder}")
    if precision == "int8":
        write_line(f"its int8 form is {export_int8(exported).path}")


@command.command(
    "verify",
    short_help="Check a model's files and measure its precisions.",
    epilog="Example: fastscore models verify minilm-l6-v2 --precision bf16",
)
@click.argument("name")
@click.option(
    "--task",
    type=click.Choice(["embedding", "fill-mask"]),
    help="What the model does.  [default: what NAME is. Embedding if it is both]",
)
@click.option(
    "--precision",
    type=click.Choice(PRECISIONS),
    help="Measure this precision only.  [default: all that can run here]",
)
@click.option(
    "--texts",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Measure on the lines of this file.  [default: dialogue utterances]",
)
def verify(name: str, task: str | None, precision: str | None, texts: Path | None) -> None:
    """Check the files of NAME and its vector for a test sentence; measure its accuracy.

    For each precision: cosine with the fp32 vector (mean and minimum), rank correlation and 99th
    percentile of the difference of pair similarities, and the most that a vector changes with the
    texts that it is embedded with. The table is kept beside the model; runs state it.

    Of a masked language model: its files, and how much pseudo-perplexities change with the texts
    that they are computed with.
    """
    from fastscore.vectors.models import is_masked_model, read_texts, verify_model

    lines = None if texts is None else read_texts(texts)
    if task == "fill-mask" or (task is None and is_masked_model(name)):
        _verify_masked(name, precision, lines)
        return
    found = verify_model(name, precision=precision, texts=lines)
    write_line(
        f"{found.exported.recipe.name}: files intact, test vector within "
        f"{found.test_difference:.1e} (ONNX SHA-256 {found.exported.onnx_sha256})"
    )
    if found.reference_difference is not None:
        write_line(
            f"fp32: within {found.reference_difference:.1e} of sentence-transformers' vectors"
        )
    write_line(f"{'':<6}{'cos mean':>10}{'cos min':>10}{'spearman':>10}{'p99':>10}{'batch':>10}")
    for row in found.accuracies:
        write_line(
            f"{row.precision:<6}{row.cosine_mean:>10.5f}{row.cosine_min:>10.5f}"
            f"{row.spearman:>10.5f}{row.difference_p99:>10.5f}{row.batch_dependence:>10.0e}"
            f"   {row.texts:,} texts, {row.runtime}"
        )
    for refused, reason in found.refused.items():
        write_line(f"{refused:<6}{reason}")


def _verify_masked(name: str, precision: str | None, texts: list[str] | None) -> None:
    from fastscore.vectors.models import verify_masked_model

    if precision not in (None, EXACT):
        raise UsageError(
            f"--precision {precision} is for embedding models: the masked language model {name!r} "
            f"runs in {EXACT} only."
        )
    found = verify_masked_model(name, texts=texts)
    write_line(f"{name}: files intact (ONNX SHA-256 {found.onnx_sha256})")
    write_line(
        f"{EXACT}: pseudo-perplexities of {found.texts:,} texts ({found.without_tokens:,} without "
        f"tokens), batch dependence {found.batch_dependence:.0e}"
    )
    write_line(
        f"There is no table of accuracy: a masked language model runs in {EXACT} alone, which "
        "is what precisions of embedding models are compared with."
    )
