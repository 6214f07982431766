"""Putting a built model into the cache: whole or not at all, whoever else is at it.

A model is built in a folder beside its place and renamed into it; an older one is renamed away.
"""

import contextlib
import errno
import hashlib
import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from fastscore_models.recipe import HashMismatchError, ModelExportError, NotExportedError

_ABANDONED_AFTER = 3600.0
_NAMED_WORK_FOLDER = re.compile(r"\..+\.[0-9]+\.[a-z0-9_]+")


def file_sha256(path: Path) -> str:
    """Return a file's SHA-256 as hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def expect_hash(path: Path, found: str, expected: str) -> None:
    """Compare a digest with the expected one."""
    if found != expected:
        raise HashMismatchError(
            f"{path} has SHA-256 {found}: expected {expected}.",
            "The file is damaged or another version; remove it and export again.",
        )


def check_files(files: Iterable[tuple[Path, str]], name: str) -> None:
    """Compare the SHA-256 of a model's files with the expected ones.

    Raises
    ------
    HashMismatchError
        Names the file, what was found and what was expected.
    """
    for path, expected in files:
        if not path.is_file():
            raise HashMismatchError(
                f"The exported model lacks {path}.", f"Run `fastscore models export {name}`."
            )
        expect_hash(path, file_sha256(path), expected)


def published(parent: Path) -> list[str]:
    """Return the names of the models that lie in a folder, sorted."""
    found = parent.glob("*/manifest.json")
    return sorted(path.parent.name for path in found if not path.parent.name.startswith("."))


def read_manifest(path: Path, missing: str, hint: str) -> dict[str, Any]:
    """Read the manifest of a published model.

    Parameters
    ----------
    path
        The manifest.
    missing
        What is said where there is none.
    hint
        What to do then, or where it is damaged.

    Raises
    ------
    NotExportedError
        If there is none.
    ModelExportError
        If it cannot be read.
    """
    try:
        manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise NotExportedError(missing, hint) from None
    except (OSError, ValueError, RecursionError) as error:
        raise ModelExportError(f"The manifest {path} cannot be read: {error}.", hint) from error
    return manifest


def build_and_publish(parent: Path, name: str, build: Callable[[Path, Path], None]) -> None:
    """Build a model's files in a folder of their own and put it in its place.

    Parameters
    ----------
    parent
        Where models lie.
    name
        The model's name, and that of its folder.
    build
        Writes the files; it gets a folder to work in, and the folder that becomes the model.

    Raises
    ------
    ModelExportError
        If nothing can be written there.
    """
    try:
        parent.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(parent)
        with _work_folder(parent, name) as work:
            built = work / "export"
            built.mkdir()
            build(work, built)
            _publish(built, parent / name)
    except OSError as error:
        raise ModelExportError(
            f"The model {name!r} could not be written below {parent}: {error.strerror}.",
            "Free space there or name another cache folder.",
        ) from error


@contextlib.contextmanager
def _work_folder(parent: Path, name: str) -> Iterator[Path]:
    """Make a folder beside the exports and remove it, whatever happens."""
    work = Path(tempfile.mkdtemp(prefix=f".{name}.{os.getpid()}.", dir=parent))
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _remove_abandoned(parent: Path) -> None:
    """Remove work folders in which nothing was written for an hour: their exports were killed."""
    oldest = time.time() - _ABANDONED_AFTER
    for work in parent.iterdir():
        if not _NAMED_WORK_FOLDER.fullmatch(work.name):
            continue
        # Another exporter may be at work in it, or cleaning as well.
        with contextlib.suppress(FileNotFoundError):
            if max(path.stat().st_mtime for path in (work, *work.rglob("*"))) < oldest:
                shutil.rmtree(work, ignore_errors=True)


def write_synced(path: Path, content: bytes) -> None:
    """Write a file through to the disk."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _publish(built: Path, target: Path) -> None:
    """Rename a built export into its place, moving an older one out of the way."""
    while True:
        try:
            os.rename(built, target)
            break
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
        retired = built.parent / f"retired.{os.urandom(4).hex()}"
        # Another exporter may have moved it already.
        with contextlib.suppress(FileNotFoundError):
            os.rename(target, retired)
    descriptor = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
