"""What is installed, exported, compiled and writable: the checks behind ``fastscore doctor``."""

import platform
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from fastscore_jit.objects import cache_folder, processor_level

from fastscore.errors import FastscoreError
from fastscore.extras import install_command
from fastscore.paths import cache_root
from fastscore.processors import available_processors
from fastscore.run.config import DEFAULT_EMBEDDER
from fastscore.suites.registry import load_suite, suite_names
from fastscore.vectors.models import list_models, open_store
from fastscore.version import __version__

PACKAGES = (
    "polars",
    "numpy",
    "pyarrow",
    "orjson",
    "click",
)
OF_EXTRAS = {
    "embed": ("onnxruntime", "tokenizers", "faiss-cpu"),
    "stats": ("scipy",),
    "plots": ("matplotlib",),
    "compile": ("numba", "llvmlite"),
}


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One thing that was looked at.

    Parameters
    ----------
    topic
        What was looked at.
    fine
        Whether it is as it should be.
    text
        What was found, and what to do where it is not fine.
    """

    topic: str
    fine: bool
    text: str


def examine(*, warm: bool) -> Iterator[Diagnosis]:
    """Look at the installation, one finding after the other.

    Parameters
    ----------
    warm
        Compile every kernel now, so that no later run has to.
    """
    yield Diagnosis(
        "fastscore",
        True,
        f"{__version__} on Python {platform.python_version()}, {platform.machine()}, "
        f"{available_processors()} processors",
    )
    for name in PACKAGES:
        yield _package(name)
    for extra, names in OF_EXTRAS.items():
        for name in names:
            yield _package(name, extra)
    for name in suite_names():
        yield _checked(f"suite {name}", lambda name=name: load_suite(name).title)  # type: ignore[misc]
    yield _checked("cache", lambda: _writable(cache_root()))
    yield _checked("model", _default_model)
    yield _checked("vectors", _default_store)
    yield _checked("kernels", lambda: _compiled(warm=warm))


def _package(name: str, extra: str | None = None) -> Diagnosis:
    try:
        return Diagnosis(name, True, version(name))
    except PackageNotFoundError:
        if extra is not None:
            return Diagnosis(name, True, f"not installed; {install_command(extra)} adds it")
        return Diagnosis(name, False, f"not installed; run `pip install {name}`")


def _checked(topic: str, look: Callable[[], str]) -> Diagnosis:
    try:
        return Diagnosis(topic, True, look())
    except FastscoreError as error:
        return Diagnosis(topic, False, str(error))
    except OSError as error:
        return Diagnosis(topic, False, f"{error.filename}: {error.strerror}")


def _writable(folder: Path) -> str:
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


def _compiled(*, warm: bool) -> str:
    from fastscore_jit.workers import missing_kernels

    from fastscore.run.kernels import compile_kernels, every_kernel
    from fastscore.run.progress import reporter

    kernels = compile_kernels((), reporter(quiet=False)) if warm else every_kernel()
    missing = missing_kernels(kernels)
    place = f"for {processor_level().name} ({cache_folder()})"
    if missing:
        return (
            f"{len(kernels) - len(missing)} of {len(kernels)} are compiled {place}; "
            "`fastscore kernels compile` compiles the others"
        )
    return f"all {len(kernels)} are compiled {place}"
