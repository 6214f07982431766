"""What every worker must see as this process does: checked before anything starts."""

import dataclasses
import os
import platform
import secrets
import socket
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from fastscore.errors import FastscoreError, RunConflictError, StoreError, UsageError
from fastscore.files import cache_root
from fastscore.logs.inputs.files import InputFile
from fastscore.logs.objects import is_remote
from fastscore.run.context import RunContext
from fastscore.run.engines.engine import Engine
from fastscore.run.kernels import load_kernels
from fastscore.settings.extras import installed_version

DECIDING_PACKAGES = ("fastscore-dialogue", "polars", "numpy", "numba", "onnxruntime", "tokenizers")
"""What decides a table's bytes."""
MOST_INPUTS = 64

_NEEDED = (
    "All workers need this fastscore, and the run directory, the inputs, the store and the model "
    "under the same paths as here."
)


def absolute(context: RunContext) -> RunContext:
    """Name everything so that a process with another working directory and cache finds it."""
    paths = {}
    for option in dataclasses.fields(context.options):
        path = getattr(context.options, option.name)
        if path and (option.metadata["names_file"] or option.metadata["names_folder"]):
            paths[option.name] = str(Path(path).absolute())
    embedder, perplexity = context.embedder, context.perplexity
    cache = cache_root().absolute()
    if embedder is not None:
        from fastscore.vectors.embedder import is_model_folder

        recipe = embedder.recipe
        if isinstance(recipe, str) and (recipe.endswith(".toml") or is_model_folder(recipe)):
            recipe = str(Path(recipe).absolute())
        store = (embedder.store or cache / "vectors").absolute()
        embedder = replace(embedder, recipe=recipe, store=store, cache=cache)
    if perplexity is not None:
        store = (perplexity.store or cache / "vectors").absolute()
        perplexity = replace(perplexity, store=store, cache=cache)
    return replace(
        context,
        run=context.run.absolute(),
        options=replace(context.options, **paths),
        embedder=embedder,
        perplexity=perplexity,
    )


@dataclass(frozen=True, slots=True)
class Expected:
    """What this process sees, and a worker must see too."""

    context: RunContext  # of the run, with its `writer`
    model: str | None  # the fingerprint of the embedder's model, if there is one
    # files that were written into the stores for this, each with what it holds
    tokens: Mapping[Path, str] = field(default_factory=dict)
    sizes: Mapping[Path, int] = field(default_factory=dict)  # the bytes of some inputs
    # of what decides a table's bytes
    versions: Mapping[str, str] = field(default_factory=lambda: _versions())


def check_workers(
    engine: Engine,
    expected: Expected,
    inputs: Sequence[InputFile],
    unused: tuple[str, ...] = (),
) -> int:
    """Make sure that all workers see what this process sees; returns how many there are.

    Each worker then loads the kernels of the run, and compiles missing ones, except those of the
    modules `unused`.
    """
    with _tokens(expected.context) as tokens:
        sizes = {
            Path(file.location).absolute(): file.size
            for file in inputs[:MOST_INPUTS]
            if not is_remote(file.location)
        }
        seen = engine.ask(partial(_look, replace(expected, tokens=tokens, sizes=sizes), unused))
    for worker, (host, process, mismatch) in sorted(seen.items()):
        if mismatch is not None:
            raise UsageError(
                f"The worker {worker} (host {host}, process {process}) {mismatch}.",
                f"{_NEEDED} Nothing was started.",
            )
    return len(seen)


def _look(expected: Expected, unused: tuple[str, ...]) -> tuple[str, int, str | None]:
    """Return a worker's host and process, and what it does not see as it should, or None."""
    mismatch = _find_mismatch(expected)
    if mismatch is None:
        load_kernels(expected.context.suite, unused)
    return socket.gethostname(), os.getpid(), mismatch


_verified_runs: set[str] = set()
"""The runs for which this process was found to see what it should, by their writers' tokens."""


def check_here(expected: Expected) -> None:
    """Make sure, once a run, that this process sees what it should.

    A worker does that before each task: it may have joined while the run lasts, when inputs and
    stores are not looked at any more.
    """
    writer = expected.context.writer
    run = "" if writer is None else writer.token
    if run in _verified_runs:
        return
    mismatch = _find_mismatch(expected)
    if mismatch is not None:
        raise UsageError(
            f"A worker (host {socket.gethostname()}, process {os.getpid()}) {mismatch}.",
            f"{_NEEDED} End it and run the same command again; what is committed is kept.",
        )
    _verified_runs.add(run)


@contextmanager
def _tokens(context: RunContext) -> Iterator[dict[Path, str]]:
    """Write a file into every store; they are removed afterwards."""
    folders = [
        settings.store
        for settings in (context.embedder, context.perplexity)
        if settings is not None and settings.store is not None
    ]
    tokens: dict[Path, str] = {}
    try:
        for folder in dict.fromkeys(folders):
            token = secrets.token_hex(8)
            path = folder / f".seen-{token}"
            tokens[path] = token
            try:
                folder.mkdir(parents=True, exist_ok=True)
                path.write_text(token)
            except OSError as error:
                raise StoreError(
                    f"{folder}: cannot write there ({error.strerror or error}).",
                    "Name another folder, or mend its permissions.",
                ) from error
        yield tokens
    finally:
        for path in tokens:
            path.unlink(missing_ok=True)


def _find_mismatch(expected: Expected) -> str | None:
    """Say what this process does not see as expected."""
    return (
        _other_versions(expected.versions)
        or _unseen_run(expected.context)
        or _unseen_token(expected.tokens)
        or _unseen_input(expected.sizes)
        or _other_model(expected)
    )


def _versions() -> dict[str, str]:
    versions = {package: installed_version(package) or "absent" for package in DECIDING_PACKAGES}
    return {"python": platform.python_version(), **versions}


def _other_versions(expected: Mapping[str, str]) -> str | None:
    for package, found in _versions().items():
        if found != expected[package]:
            return f"has {package} {found}, expected {expected[package]} as here"
    return None


def _unseen_run(context: RunContext) -> str | None:
    try:
        context.check_writer()
    except RunConflictError:
        return f"does not see this process's lock in the run directory {context.run}"
    return _not_writable(context.run)


def _not_writable(folder: Path) -> str | None:
    try:
        with tempfile.TemporaryFile(dir=folder):
            return None
    except OSError as error:
        return f"cannot write to {folder}: {error.strerror or error}"


def _unseen_token(tokens: Mapping[Path, str]) -> str | None:
    for path, token in tokens.items():
        try:
            found = path.read_text()
        except OSError as error:
            return f"does not see what was written to {path}: {error.strerror or error}"
        if found != token:
            return f"sees something else in {path} than was written there"
        mismatch = _not_writable(path.parent)
        if mismatch:
            return mismatch
    return None


def _unseen_input(sizes: Mapping[Path, int]) -> str | None:
    for path, size in sizes.items():
        try:
            found = path.stat().st_size
        except OSError as error:
            return f"does not see the input {path}: {error.strerror or error}"
        if found != size:
            return f"sees {found:,} bytes in the input {path}, expected {size:,}"
    return None


def _other_model(expected: Expected) -> str | None:
    settings: Any = expected.context.embedder
    if settings is None:
        return None
    from fastscore.vectors.embedder import Embedder

    try:
        embedder = Embedder(
            settings.recipe,
            precision=settings.precision,
            device=settings.device,
            cache_dir=settings.cache,
        )
    except FastscoreError as error:
        return f"cannot use the model {settings.recipe} in {settings.cache}: {error.message}"
    if embedder.fingerprint != expected.model:
        return f"has another model {settings.recipe} in {settings.cache} than this process"
    return None
