"""Small file systems: full, read-only, blind to case, or with one file under two names."""

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(folder: Path, size: str, *options: str) -> Iterator[Path]:
    """Mount a file system of a size on a new folder; skip the test where that is not allowed."""
    folder.mkdir(parents=True)
    how = ",".join((f"size={size}", *options))
    with _mounted(["mount", "-t", "tmpfs", "-o", how, "tmpfs"], folder):
        yield folder


@contextmanager
def disk_without_case(folder: Path) -> Iterator[Path]:
    """Mount NTFS by `ntfs-3g` such that names in any case are one; skip where there is none."""
    folder.mkdir(parents=True)
    image = folder.with_name(f"{folder.name}.image")
    with image.open("wb") as file:
        file.truncate(48 << 20)
    _try("mkntfs", "--quiet", "--force", "--fast", str(image))
    with _mounted(["lowntfs-3g", "-o", "ignore_case", str(image)], folder):
        yield folder


@contextmanager
def same_file(path: Path, other: Path) -> Iterator[None]:
    """Let another name lead to a file or folder as it would on a disk that ignores differences."""
    if other.exists():  # it is such a disk
        yield
        return
    other.mkdir() if path.is_dir() else other.touch()
    with _mounted(["mount", "--bind", str(path)], other):
        yield


@contextmanager
def _mounted(words: Sequence[str], place: Path) -> Iterator[None]:
    _try(*words, str(place))
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def _try(*words: str) -> None:
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip(f"there is no `{words[0]}` here")
    if done.returncode != 0:
        pytest.skip(f"nothing can be mounted here: {done.stderr.strip()}")


def make_read_only(folder: Path) -> None:
    """Let nobody write to a mounted file system any more, root neither."""
    subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
