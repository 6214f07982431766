"""Optional packages: modules of extras, and entry points of other packages."""

import importlib
import importlib.util
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache, reduce
from glob import iglob
from typing import Any, NamedTuple

from fastscore.errors import UsageError

EXTRAS = {
    "arrow": ("pyarrow",),
    "cloud": ("obstore",),
    "compile": ("numba", "llvmlite"),
    "cuda": ("faiss", "onnx", "onnxruntime", "safetensors", "tokenizers"),
    "dask": ("distributed",),
    "embed": ("faiss", "onnx", "onnxruntime", "safetensors", "tokenizers"),
    "llm": ("openai",),
    "mlflow": ("mlflow",),
    "openvino": ("openvino",),
    "plots": ("matplotlib",),
    "ray": ("ray",),
    "stats": ("scipy",),
    "wandb": ("wandb",),
}
"""The modules that each extra installs."""

_EXTRA_OF = {module: extra for extra, modules in EXTRAS.items() for module in modules}


def install_command(extra: str) -> str:
    """Return the command that installs an extra."""
    return f"pip install 'fastscore-dialogue[{extra}]'"


def missing_package(module: str, purpose: str) -> UsageError:
    """Return the error for a module that is not installed."""
    extra = _EXTRA_OF.get(module)
    command = install_command(extra) if extra else f"pip install {module}"
    return UsageError(
        f"{purpose} needs the package {module}, which is not installed.", f"Run: {command}"
    )


def is_installed(module: str) -> bool:
    """Return whether a module of an extra can be imported."""
    return importlib.util.find_spec(module) is not None


def require(extra: str, purpose: str) -> None:
    """Raise an error if a module of an extra is missing."""
    for module in EXTRAS[extra]:
        if not is_installed(module):
            raise missing_package(module, purpose)


def load(module: str, purpose: str) -> Any:
    """Import a module of an extra, or a part of one (``"scipy.stats"``)."""
    with explained(purpose):
        return importlib.import_module(module)


@contextmanager
def explained(purpose: str) -> Iterator[None]:
    """Convert the failed import of an extra's module to an error with the install command."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in (*_EXTRA_OF, "pandas"):
            raise
        raise missing_package(package, purpose) from error


def scipy_stats() -> Any:
    """Import `scipy.stats`, for rank tests."""
    return load("scipy.stats", "This statistic")


class EntryPoint(NamedTuple):
    """An object that a package declares by name."""

    name: str
    value: str  # module:attribute

    def load(self) -> Any:
        """Import the object."""
        module, _, attribute = self.value.partition(":")
        return reduce(getattr, attribute.split("."), importlib.import_module(module))


def entry_points(group: str) -> tuple[EntryPoint, ...]:
    """Return what other packages declare in a group of entry points."""
    if not _are_declared():
        return ()
    from importlib.metadata import entry_points  # late: it takes as long to import as click

    return tuple(EntryPoint(each.name, each.value) for each in entry_points(group=group))


@cache
def _are_declared() -> bool:
    """Tell whether any package may declare a group of ours."""
    for place in dict.fromkeys(sys.path):
        if os.path.isfile(place):  # an archive
            return True
        for declared in iglob("*.*-info/entry_points.txt", root_dir=place or "."):
            with suppress(OSError), open(os.path.join(place, declared), "rb") as file:
                if b"[fastscore." in file.read():
                    return True
    return False


def load_entry(entry: EntryPoint, what: str) -> Any:
    """Import what a package declares, such as a suite."""
    try:
        return entry.load()
    except (ImportError, AttributeError) as error:
        raise UsageError(
            f"{what} {entry.name}: {entry.value} cannot be imported ({error}).",
            "Install the package that declares it again, or uninstall it.",
        ) from error


@cache
def installed_version(package: str) -> str | None:
    """Return the version of a package without parsing its metadata, None if it is absent."""
    from importlib import metadata

    try:
        written = metadata.distribution(package).read_text("METADATA") or ""
    except metadata.PackageNotFoundError:
        return None
    found = re.search(r"^Version: *(\S+)", written, re.MULTILINE)
    return found[1] if found else metadata.version(package)
